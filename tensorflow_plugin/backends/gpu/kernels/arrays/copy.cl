// One view to another, for devices that are no processors. In front of this stand ELEMENT, INDEX, which counts what is
// walked, and walk(i, numbers, from, to), the places of one, with TABLE.
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
  TABLE(numbers);
#ifdef STRIP
  const INDEX i = get_global_id(0);
  if (i >= n) return;
  long from_here, to_here;
  walk(i, numbers, &from_here, &to_here);
#ifdef WIDE_IN
  values.in = *(const GLOBAL WIDE_IN *)(source + from_here);
#else
#pragma unroll
  for (uint k = 0; k < EACH; ++k) values.parts[k] = source[from_here + k * from_step];
#endif
#ifdef WIDE_OUT
  *(GLOBAL WIDE_OUT *)(destination + to_here) = values.out;
#else
#pragma unroll
  for (uint k = 0; k < EACH; ++k) destination[to_here + k * to_step] = values.parts[k];
#endif
#else
  const uint items = get_local_size(0);
  const INDEX first = (INDEX)get_group_id(0) * (items * EACH) + (uint)get_local_id(0);
  long places[EACH];
#pragma unroll
  for (uint k = 0; k < EACH; ++k) {
    if (first + k * items < n) {
      long from_here;
      walk(first + k * items, numbers, &from_here, &places[k]);
      values.parts[k] = source[from_here];
    }
  }
#pragma unroll
  for (uint k = 0; k < EACH; ++k) {
    if (first + k * items < n) destination[places[k]] = values.parts[k];
  }
#endif
}
