// Batch normalization. In front of this stand LANES, how many channels an item has; LOAD_X(i), LOAD_DY(i) and
// STORE_Y(i, x); and GRADIENT.
//
// Channels are summed up in parts. Each part is an item for LANES channels that are neighbours in memory. It has the
// elements of [first part, first part + span) that are `step` apart. The next run adds up the parts for itself. The
// statistics of a channel become what the last run computes each element with.
#define STEP_SUMS 0     // of x, or of dy and of dy (x - mean)
#define STEP_SQUARES 1  // of x - mean
#define STEP_CHANNELS 2
#define STEP_ELEMENTS 3
#define BLOCK 64

// Element e of channel c: [count, channels] or [images, channels, spatial].
#define AT_ELEMENT(e, c) \
  (channels_last ? (e)*channels + (c) : ((e) / spatial * channels + (c)) * spatial + (e) % spatial)

typedef struct {
  float mean, scale, offset, slope;
} Channel;

// `sums` has two of them for each part and channel: [2, parts, channels].
kernel void run(const int step_of_all, const ulong count, const ulong channels, const ulong spatial, const ulong parts,
                const ulong first, const ulong step, const ulong span, const int channels_last, const int training,
                const float epsilon, const float factor, MEMORY(x), MEMORY(dy), MEMORY(scale), MEMORY(offset),
                MEMORY(mean), MEMORY(variance), MEMORY(y), MEMORY(new_mean), MEMORY(new_variance), MEMORY(saved_mean),
                MEMORY(saved_variance), MEMORY(dscale), MEMORY(doffset), MEMORY(sums), MEMORY(of_channels)) {
  const ulong id = get_global_id(0);
  if (step_of_all == STEP_ELEMENTS) {
    if (id >= count * channels) return;
    // Divisions of 32 bits take a fraction of the time.
    const int small = count * channels <= UINT_MAX;
    const ulong line = channels_last ? id : small ? (uint)id / (uint)spatial : id / spatial;
    const ulong c = small ? (uint)line % (uint)channels : line % channels;
    const Channel channel = AT(Channel, of_channels)[c];
    const float away = LOAD_X(id) - channel.mean;
#if GRADIENT
    const float dx = (LOAD_DY(id) - channel.offset - away * channel.slope) * channel.scale;
    STORE_Y(id, dx);
#else
    const float value = away * channel.scale + channel.offset;
    STORE_Y(id, value);
#endif
    return;
  }
  GLOBAL float *first_sums = AT(float, sums), *second_sums = AT(float, sums) + parts * channels;
  if (step_of_all == STEP_CHANNELS) {
    const ulong c = id;
    if (c >= channels) return;
    Channel channel;
    float sum = 0, squares = 0;
    if (GRADIENT || training) {
      for (ulong p = 0; p < parts; ++p) {
        sum += first_sums[p * channels + c];
        squares += second_sums[p * channels + c];
      }
    }
#if GRADIENT
    const float spread = AT(float, variance)[c] + epsilon, inverse = 1 / sqrt(spread);
    AT(float, dscale)[c] = squares * inverse;
    AT(float, doffset)[c] = sum;
    channel.mean = AT(float, mean)[c];
    channel.scale = AT(float, scale)[c] * inverse;
    channel.offset = training ? sum / (float)count : 0;
    channel.slope = training ? squares / (float)count / spread : 0;
#else
    float of_batch;
    if (training) {
      channel.mean = sum / (float)count;
      of_batch = squares / (float)count;
      const float corrected = count > 1 ? squares / (float)(count - 1) : of_batch;
      // With factor 1 there may be no running statistics at all.
      const float kept = 1 - factor;
      AT(float, new_mean)[c] = factor == 1 ? channel.mean : AT(float, mean)[c] * kept + channel.mean * factor;
      AT(float, new_variance)[c] = factor == 1 ? corrected : AT(float, variance)[c] * kept + corrected * factor;
      AT(float, saved_mean)[c] = channel.mean;
      AT(float, saved_variance)[c] = of_batch;
    } else {
      channel.mean = AT(float, mean)[c];
      of_batch = AT(float, variance)[c];
    }
    channel.scale = AT(float, scale)[c] / sqrt(of_batch + epsilon);
    channel.offset = AT(float, offset)[c];
    channel.slope = 0;
#endif
    AT(Channel, of_channels)[c] = channel;
    return;
  }
  const ulong blocks = (channels + LANES - 1) / LANES, part = id / blocks, c = id % blocks * LANES;
  if (part >= parts) return;
  float center[LANES], total[LANES], total_of_products[LANES];
  for (int i = 0; i < LANES; ++i) {
    // Channels beyond the last are that again, and not stored.
    const ulong lane = min(c + i, channels - 1);
    total[i] = total_of_products[i] = center[i] = 0;
#if GRADIENT
    center[i] = AT(float, mean)[lane];
#else
    if (step_of_all == STEP_SQUARES) {
      for (ulong p = 0; p < parts; ++p) center[i] += first_sums[p * channels + lane];
      center[i] /= (float)count;
    }
#endif
  }
  const ulong begin = part * first, end = min(count, begin + span);
  // In blocks first, as sums of few numbers lose less.
  for (ulong from = begin; from < end; from += BLOCK * step) {
    const ulong to = min(end, from + BLOCK * step);
    float sum[LANES], of_products[LANES];
    for (int i = 0; i < LANES; ++i) sum[i] = of_products[i] = 0;
#if GRADIENT
#define ADD(at)                                              \
  const float g = LOAD_DY(at), away = LOAD_X(at) - center[i]; \
  sum[i] += g;                                               \
  of_products[i] += g * away;
#else
#define ADD(at)                                  \
  const float away = LOAD_X(at) - center[i];     \
  sum[i] += away;                                \
  of_products[i] += away * away;
#endif
    if (channels_last && c + LANES <= channels) {
      for (ulong e = from; e < to; e += step) {
        const ulong at = e * channels + c;
        for (int i = 0; i < LANES; ++i) {
          ADD(at + i)
        }
      }
    } else {
      for (ulong e = from; e < to; e += step) {
        for (int i = 0; i < LANES; ++i) {
          const ulong lane = min(c + i, channels - 1), at = AT_ELEMENT(e, lane);
          ADD(at)
        }
      }
    }
    for (int i = 0; i < LANES; ++i) {
      total[i] += sum[i];
      total_of_products[i] += of_products[i];
    }
  }
  for (int i = 0; i < LANES && c + i < channels; ++i) {
    const ulong at = part * channels + c + i;
    if (GRADIENT || step_of_all == STEP_SUMS) first_sums[at] = total[i];
    if (GRADIENT || step_of_all == STEP_SQUARES) second_sums[at] = total_of_products[i];
  }
}
