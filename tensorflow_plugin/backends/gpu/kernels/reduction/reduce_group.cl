// As reduce.cl, with the same in front, for devices that are no processors. Also in front stand ITEMS, of a group; EACH;
// and INDEX, which counts outputs and elements. Two functions are there, kept(output, numbers, places) and
// reduced(element, numbers, places), with kept_TABLE and reduced_TABLE (walk.h). Each has its part of the place in each
// input. ONE_AXIS says that elements are along one axis, at steps, and that the program is short.
//
// A group has some outputs, 2^lanes_log2 items for each. Items read neighbours at the same time: `lanes_are_neighbours`
// says if they are elements of an output or outputs. An item has EACH elements on their way at a time, and combines them
// first, as sums of few numbers lose less. The items of an output put their results together in local memory.
kernel void run(const INDEX outputs, const INDEX n, const INDEX parts, const INDEX span, const int lanes_log2,
                const int lanes_are_neighbours, const long divisor, const int again, CONSTANT long *table,
                MEMORY(partials), MEMORY(out) SOURCE_PARAMETERS) {
  SHARED ACC shared[ITEMS];
  const uint item = get_local_id(0), lanes = 1u << lanes_log2, lines = ITEMS >> lanes_log2;
  const uint lane = lanes_are_neighbours ? item & (lanes - 1) : item / lines;
  const uint line = lanes_are_neighbours ? item >> lanes_log2 : item & (lines - 1);
  const INDEX blocks = (outputs + lines - 1) / lines, part = (INDEX)get_group_id(0) / blocks;
  const INDEX output = ((INDEX)get_group_id(0) - part * blocks) * lines + line;
  const INDEX begin = part * span, end = min(n, begin + span);
  ACC total = IDENTITY;
  if (output < outputs && again) {
    const GLOBAL ACC *found = AT(ACC, partials) + output;
    for (INDEX e = begin + lane; e < end; e += lanes * EACH) {
      ACC terms[EACH], block = IDENTITY;
#pragma unroll
      for (uint k = 0; k < EACH; ++k) terms[k] = found[(ulong)min(e + k * lanes, end - 1) * outputs];
#pragma unroll
      for (uint k = 0; k < EACH; ++k) {
        if (e + k * lanes < end) block = COMBINE(block, terms[k]);
      }
      total = COMBINE(total, block);
    }
  } else if (output < outputs) {
    long first[INPUTS];
    {
      kept_TABLE(numbers);
      kept(output, numbers, first);
    }
    reduced_TABLE(numbers);
    INDEX e = begin + lane;
#ifdef ONE_AXIS
    // Without a comparison or a product for each element.
    long next[INPUTS], step[INPUTS];
    reduced(e, numbers, next);
    for (int i = 0; i < INPUTS; ++i) {
      next[i] += first[i];
      step[i] = (long)lanes * numbers[1 + i];
    }
    for (; e + lanes * (EACH - 1) < end; e += lanes * EACH) {
      VALUE_TYPE values[EACH];
#pragma unroll
      for (uint k = 0; k < EACH; ++k) {
        values[k] = VALUE(next SOURCE_ARGUMENTS);
        for (int i = 0; i < INPUTS; ++i) next[i] += step[i];
      }
      ACC block = IDENTITY;
#pragma unroll
      for (uint k = 0; k < EACH; ++k) {
        const ACC term = TERM(values[k], (long)(e + k * lanes));
        block = COMBINE(block, term);
      }
      total = COMBINE(total, block);
    }
#endif
    for (; e < end; e += lanes * EACH) {
      VALUE_TYPE values[EACH];
#pragma unroll
      for (uint k = 0; k < EACH; ++k) {
        long o[INPUTS];
        reduced(min(e + k * lanes, end - 1), numbers, o);
        for (int i = 0; i < INPUTS; ++i) o[i] += first[i];
        values[k] = VALUE(o SOURCE_ARGUMENTS);
      }
      ACC block = IDENTITY;
#pragma unroll
      for (uint k = 0; k < EACH; ++k) {
        const ACC term = TERM(values[k], (long)(e + k * lanes));
        if (e + k * lanes < end) block = COMBINE(block, term);
      }
      total = COMBINE(total, block);
    }
  }
  if (lanes > 1) {
    const uint apart = lanes_are_neighbours ? 1 : lines;
    shared[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint left = lanes / 2; left > 0; left /= 2) {
      if (lane < left) {
        const ACC other = shared[item + left * apart];
        total = COMBINE(total, other);
        shared[item] = total;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  if (lane != 0 || output >= outputs) return;
  if (parts > 1) {
    AT(ACC, partials)[(ulong)part * outputs + output] = total;
  } else {
    const RESULT_TYPE result = RESULT(total, divisor);
    STORE_RESULT(output, result);
  }
}
