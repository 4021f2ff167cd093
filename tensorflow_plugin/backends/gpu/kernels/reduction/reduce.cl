// These stand before this source: VALUE (the source program, as a function of its inputs' places), and INPUTS (how many
// it has). The kind gives the rest: ACC, the type that is carried; IDENTITY; TERM(value, e), the term of element e;
// COMBINE(a, b); and RESULT(a, divisor).
//
// An item reduces a part of an output's elements: those of [first part, first part + span) that are `step` apart. One
// part is all of them. Otherwise the results are partials [parts, outputs], of which another run, with `again`, makes
// one.
//
// Elements are combined in blocks first, as sums of few numbers lose less.
#define BLOCK 64

kernel void run(const ulong outputs, const ulong n, const ulong parts, const ulong first, const ulong step,
                const ulong span, const long divisor, const int again, const int parts_are_neighbours,
                const int kept_rank, const int reduced_rank, CONSTANT long *table, MEMORY(partials),
                MEMORY(out) SOURCE_PARAMETERS) {
  const ulong id = get_global_id(0);
  if (id >= outputs * parts) return;
  const ulong output = parts_are_neighbours ? id / parts : id % outputs;
  const ulong part = parts_are_neighbours ? id % parts : id / outputs;
  ACC total = IDENTITY;
  if (again) {
    const ulong end = min(n, part * first + span);
#pragma unroll 4
    for (ulong p = part * first; p < end; p += step) {
      const ACC partial = AT(ACC, partials)[p * outputs + output];
      total = COMBINE(total, partial);
    }
  } else {
    CONSTANT long *reduced = table + kept_rank * (1 + INPUTS);
    long begin[INPUTS];
    ulong rest = output;
    for (int k = 0; k < INPUTS; ++k) begin[k] = 0;
    for (int d = kept_rank - 1; d >= 0; --d) {
      const long position = rest % (ulong)table[d];
      rest /= (ulong)table[d];
      for (int k = 0; k < INPUTS; ++k) begin[k] += position * table[kept_rank * (1 + k) + d];
    }
    const int inner = reduced_rank - 1;
    ulong e = part * first;
    const ulong end = min(n, e + span);
    while (e < end) {
      const ulong block_end = min(end, e + BLOCK * step);
      ACC block = IDENTITY;
      while (e < block_end) {
        long o[INPUTS];
        for (int k = 0; k < INPUTS; ++k) o[k] = begin[k];
        ulong along = 0;
        rest = e;
        for (int d = inner; d >= 0; --d) {
          const ulong position = rest % (ulong)reduced[d];
          rest /= (ulong)reduced[d];
          if (d == inner) along = position;
          for (int k = 0; k < INPUTS; ++k) o[k] += (long)position * reduced[reduced_rank * (1 + k) + d];
        }
        // As far as the innermost axis goes, elements are at steps.
        const ulong left = min((ulong)reduced[inner] - along, block_end - e);
        // So that several elements are on their way at a time.
#pragma unroll 4
        for (ulong run = 0; run < left; run += step, e += step) {
          const VALUE_TYPE value = VALUE(o SOURCE_ARGUMENTS);
          const ACC term = TERM(value, (long)e);
          block = COMBINE(block, term);
          for (int k = 0; k < INPUTS; ++k) o[k] += (long)step * reduced[reduced_rank * (1 + k) + inner];
        }
      }
      total = COMBINE(total, block);
    }
  }
  if (parts > 1) {
    AT(ACC, partials)[part * outputs + output] = total;
  } else {
    const RESULT_TYPE result = RESULT(total, divisor);
    STORE_RESULT(output, result);
  }
}
