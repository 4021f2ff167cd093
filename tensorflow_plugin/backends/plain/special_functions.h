// Functions that <cmath> lacks, in double.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SPECIAL_FUNCTIONS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SPECIAL_FUNCTIONS_H_

namespace xpu::plain {

// The inverse of erf: infinite at -1 and 1, NaN beyond.
double ErfInverse(double y);
// log |gamma(x)|; unlike std::lgamma it writes no global sign, so threads may share it.
double LogGamma(double x);
// The derivative of log gamma; NaN at 0 and the negative integers, as TensorFlow has it.
double DigammaFunction(double x);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SPECIAL_FUNCTIONS_H_
