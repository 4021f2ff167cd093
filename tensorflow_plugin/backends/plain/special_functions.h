// Functions that <cmath> lacks, in double.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SPECIAL_FUNCTIONS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SPECIAL_FUNCTIONS_H_

namespace xpu::plain {

// The inverse of erf: infinite at -1 and 1, NaN beyond.
double ErfInverse(double y);
// Where the normal distribution function is p: infinite at 0 and 1, NaN beyond.
double NormalQuantile(double p);
// log |gamma(x)|; unlike std::lgamma it writes no global sign, so threads may share it.
double LogGamma(double x);
// The derivative of log gamma; NaN at 0 and the negative integers, as TensorFlow has it.
double DigammaFunction(double x);

// Under the names of their instructions (primitives/program.h). At poles and out of a function's domain they are what
// TensorFlow's kernels for the CPU give.
namespace special {

double BesselI0(double x);
double BesselI0e(double x);
double BesselI1(double x);
double BesselI1e(double x);
double BesselJ0(double x);
double BesselJ1(double x);
double BesselK0(double x);
double BesselK0e(double x);
double BesselK1(double x);
double BesselK1e(double x);
double BesselY0(double x);
double BesselY1(double x);

double Dawsn(double x);
double Expint(double x);
double FresnelCos(double x);
double FresnelSin(double x);
double Spence(double x);

double Igamma(double a, double x);
double Igammac(double a, double x);
// Both of them for large a and x near it; and Igammac for a and x of up to 1, above 0.
struct IncompleteGamma {
  double lower, upper;
};
bool IsNearLargeA(double a, double x);
IncompleteGamma NearLargeA(double a, double x);
double UpperOfSmall(double a, double x);
double IgammaGradA(double a, double x);
double GammaSampleGrad(double alpha, double sample);
double Polygamma(double n, double x);
double Zeta(double x, double q);
double Betainc(double a, double b, double x);

}  // namespace special

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SPECIAL_FUNCTIONS_H_
