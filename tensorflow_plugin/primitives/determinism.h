// The wish for the same results in every run, which a program may have while it runs.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_DETERMINISM_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_DETERMINISM_H_

namespace xpu {

// True if commands must give the same bits in every run. False until SetDeterminismQuery.
bool RequiresDeterminism();

// `query` is asked at every command that has a choice; null: the answer is false.
void SetDeterminismQuery(bool (*query)());

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_DETERMINISM_H_
