// The table of all that this plugin's C++ uses of TensorFlow behind its C API, and whether each of it is in use.
//
// A row is called a hook, as its sisters in Python are (python/tensorflow_xpu/hooks). Each has a check that runs once,
// when the core is loaded. A hook whose check fails is off, and one line says so.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_TABLE_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow_plugin/tf_internals/check.h"

namespace xpu::tf_internals {

struct PrivatePart {
  const char* name;   // what it is
  const char* guard;  // what is looked at before it is used
};

enum class Kind {
  kRequired,     // without it there is no XPU
  kCorrectness,  // without it something would be refused
  kSpeed,        // without it something takes longer
};

struct Internal {
  const char* name;
  Kind kind;
  bool is_small;  // TF_XPU_HOOKS=0 leaves it out
  const char* purpose;
  const char* without;
  const char* instead;  // the public interface that would make it unnecessary
  const char* source;   // the file with the check
  std::vector<PrivatePart> parts;
};

const std::vector<Internal>& Internals();

// The hooks in Python. TF_XPU_HOOKS_WITHOUT may name both kinds, and is ignored if it names anything else.
const std::vector<std::string>& HooksInPython();

// Runs a check, unless an option leaves the hook out. False if the hook is off, of which a line on stderr tells.
bool TurnOn(const std::string& name, const std::function<void(Check&)>& check);
// The same; the reason, without a line.
std::string WhyOff(const std::string& name, const std::function<void(Check&)>& check);

// From now on the hook is off. The first time a line tells of it; `quietly`: none does, since the line of another hook
// says it.
void TurnOff(const std::string& name, const std::string& why, bool quietly = false);

// The hook `name` is off where `needed` is: the line of that one, if there is any, says what is lost.
void TurnOffWithout(const std::string& needed, const std::string& name);

// The hook is off by an option of its own, before its check.
void LeaveOut(const std::string& name, const std::string& option);

bool IsOn(const std::string& name);
// "on", "not in use yet", "off by option (...)" or "off: why".
std::string StateOf(const std::string& name);
// The state that another library, with a table of its own, has found; a line if the hook is off by its check.
void Take(const std::string& name, const std::string& state);

// The observation that TF_XPU_FAULT=internal=NAME:lie@N names; Check::kAllLies without N.
int LieAbout(const std::string& name);

// JSON: [{"name", "kind", "state", "purpose", "without", "instead", "source": str, "parts": [[name, guard]]}].
std::string Describe();

// For tests: what a line says if a check is lied to, for each observation. It is of the checks that this library has
// run and that have passed. JSON: {name: [str]}.
std::string DescribeLies();

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_TABLE_H_
