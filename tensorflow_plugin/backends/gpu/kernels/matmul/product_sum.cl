// Adds up the parts [parts, items] of a product. SUM and FINISH are defined.
kernel void run(const ulong items, const uint parts, MEMORY(partials), MEMORY(c) EPILOGUE_PARAMETERS) {
  const ulong id = get_global_id(0);
  if (id >= items) return;
  SUM total = SPLAT(SUM, 0);
#pragma unroll 4
  for (uint part = 0; part < parts; ++part) total += AT(SUM, partials)[part * items + id];
  FINISH(id, total);
}
