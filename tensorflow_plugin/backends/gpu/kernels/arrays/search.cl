// The position of a value in its sorted row, an item each. In front of this stand T, a register, LOAD_SORTED(i) and
// LOAD_VALUE(i), and INDEX, the type of positions.
kernel void run(const ulong items, const ulong n, const ulong m, const int upper, MEMORY(sorted), MEMORY(values),
                MEMORY(out)) {
  const ulong id = get_global_id(0);
  if (id >= items) return;
  const ulong row = id / m * n;
  const T value = LOAD_VALUE(id);
  ulong low = 0, high = n;
  while (low < high) {
    const ulong middle = (low + high) / 2;
    const T element = LOAD_SORTED(row + middle);
    if (upper ? !(value < element) : element < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  AT(INDEX, out)[id] = (INDEX)low;
}
