// One view to another, for devices that are no processors. In front of this stand ELEMENT, INDEX, which counts what is
// walked, and walk(i, numbers, places), the places of one in both, with walk_TABLE (walk.h).
//
// An item copies EACH elements. Those of STRIPs are neighbours along an axis that is short, at steps of from_step and
// to_step. Otherwise they are a group's items apart. All of them are on their way at a time. A strip that is dense is
// one number, WIDE_IN or WIDE_OUT.
typedef union {
  ELEMENT parts[EACH];
#ifdef WIDE_IN
  WIDE_IN in;
#endif
#ifdef WIDE_OUT
  WIDE_OUT out;
#endif
} Values;

kernel void run(const ulong n, MEMORY(in), MEMORY(out), const long from_step, const long to_step,
                CONSTANT long *table) {
  const GLOBAL ELEMENT *source = AT(ELEMENT, in);
  GLOBAL ELEMENT *destination = AT(ELEMENT, out);
  Values values;
  walk_TABLE(numbers);
#ifdef STRIP
  const INDEX i = get_global_id(0);
  if (i >= n) return;
  long places[2];
  walk(i, numbers, places);
#ifdef WIDE_IN
  values.in = *(const GLOBAL WIDE_IN *)(source + places[0]);
#else
#pragma unroll
  for (uint k = 0; k < EACH; ++k) values.parts[k] = source[places[0] + k * from_step];
#endif
#ifdef WIDE_OUT
  *(GLOBAL WIDE_OUT *)(destination + places[1]) = values.out;
#else
#pragma unroll
  for (uint k = 0; k < EACH; ++k) destination[places[1] + k * to_step] = values.parts[k];
#endif
#else
  const uint items = get_local_size(0);
  const INDEX first = (INDEX)get_group_id(0) * (items * EACH) + (uint)get_local_id(0);
  long to[EACH];
#pragma unroll
  for (uint k = 0; k < EACH; ++k) {
    if (first + k * items < n) {
      long places[2];
      walk(first + k * items, numbers, places);
      values.parts[k] = source[places[0]];
      to[k] = places[1];
    }
  }
#pragma unroll
  for (uint k = 0; k < EACH; ++k) {
    if (first + k * items < n) destination[to[k]] = values.parts[k];
  }
#endif
}
