"""The mutants of tools/mutate_passes.py: one line of a pass each, broken on purpose."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    """The defect that the change makes, its file of commands, and the texts before and after; the first is there
    once."""

    name: str
    file: str
    before: str
    after: str


MUTANTS = (
    # EliminateCommonSubexpressions
    Mutant("repeated: written over since", "simple_passes.cc", "++version[place.buffer]", "(void)0"),
    Mutant("repeated: other places", "simple_passes.cc", "        Append(command.in[i].offset, &key);\n", ""),
    Mutant("repeated: other strides", "simple_passes.cc", "++i) Append(desc.in_strides[i], key);\n", "++i) {\n  }\n"),
    Mutant("repeated: another buffer", "simple_passes.cc", "        Append(command.in[i].buffer, &key);\n", ""),
    Mutant(
        "repeated: another program", "simple_passes.cc", "Append(reinterpret_cast<intptr_t>(desc.program), key);", ""
    ),
    Mutant("repeated: wanted all the same", "simple_passes.cc", "if (!live_out) {", "if (true) {"),
    Mutant("repeated: written twice", "simple_passes.cc", "uses.buffers[b].writers.size() == 1 &&", ""),
    # EliminateDeadCode
    Mutant("unused: read by one", "simple_passes.cc", "readers[place.buffer] > 0", "readers[place.buffer] > 1"),
    Mutant("unused: wanted", "simple_passes.cc", "(kept[place.buffer] || readers", "(readers"),
    Mutant(
        "unused: readers counted twice",
        "simple_passes.cc",
        "if (gone[i]) each_read(command, [&](int b) { --readers[b]; });",
        "if (gone[i]) each_read(command, [&](int b) { readers[b] -= 2; });",
    ),
    Mutant("unused: may fail", "simple_passes.cc", "if (command.may_fail()) gone[i] = false;", ""),
    # DeduplicateIndexChecks
    Mutant("indices: written over since", "check_indices.cc", "++version[place.buffer]", "(void)0"),
    Mutant(
        "indices: fewer of them", "check_indices.cc", "Append(command.footprint.in[indices.input].elements, &key)", ""
    ),
    Mutant("indices: other extents", "check_indices.cc", "Append(DimsOfIndices(command), &key)", ""),
    Mutant(
        "indices: negative ones pass", "check_indices.cc", " && (scatter == nullptr || !scatter->skip_negative)", ""
    ),
    Mutant(
        "indices: another failure",
        "check_indices.cc",
        "if (command.may_fail() && SucceedsWithinRange(command)) {",
        "if (command.may_fail() && IndicesOf(command).input >= 0) {",
    ),
    # FindSafeDivisions
    Mutant(
        "divisions: a negative exponent",
        "check_divisors.cc",
        "return false;  // a negative exponent fails",
        "return true;",
    ),
    Mutant(
        "divisions: zeros",
        "check_divisors.cc",
        "!HasZero(bytes.data() + range.begin, (range.end - range.begin) / size, SizeOf(instr.type))",
        "size > 0",
    ),
    # AssignInPlace
    Mutant(
        "assignments: read later",
        "assign_in_place.cc",
        "of_input.readers.back() <= first",
        "of_input.readers.back() >= 0",
    ),
    Mutant("assignments: from other places", "assign_in_place.cc", "!ReadsWhereItWrites(command, k, o)", "false"),
    Mutant("assignments: before a failure", "assign_in_place.cc", "list.commands[c].may_fail()", "false"),
    Mutant("assignments: a part", "assign_in_place.cc", "!WritesWhole(list, command, static_cast<int>(o))", "false"),
    # ScheduleIndexChecks
    Mutant("early: in spite of updates", "check_indices.cc", "command.follows_updates ||", ""),
    Mutant(
        "early: indices that are written",
        "check_indices.cc",
        "if (written != writers.end() && *written <= static_cast<int>(c)) continue;",
        "",
    ),
    Mutant(
        "early: some of several coordinates",
        "check_indices.cc",
        "elements / std::max(1, desc.dims.rank())",
        "elements / 4",
    ),
    Mutant(
        "early: before they come from the host",
        "check_indices.cc",
        "list->commands.insert(list->commands.begin() + num_copies",
        "list->commands.insert(list->commands.begin()",
    ),
    # ScheduleCopiesToHost
    Mutant("to the host: not early", "simple_passes.cc", "early[i] = early[i] ||", "early[i] = false &&"),
    Mutant("to the host: without its dependencies", "simple_passes.cc", "for (int b : before[i]) early[b] = true;", ""),
    # ScheduleSmallResults
    Mutant("few numbers: none", "simple_passes.cc", "few[b] = list->buffers[b].bytes <= kFewBytes", "few[b] = false"),
    # Uses
    Mutant("uses: what is wanted is not kept", "dependencies.cc", "kept[b] = true", "(void)b"),
    Mutant(
        "order: read after written",
        "dependencies.cc",
        "      meet(states[command.in[k].buffer].writes, RangeOfInput(command, k));\n",
        "",
    ),
    Mutant("order: written after read", "dependencies.cc", "      meet(states[buffer].reads, range);\n", ""),
    Mutant("order: written after written", "dependencies.cc", "      meet(states[buffer].writes, range);\n", ""),
    Mutant(
        "order: fails before it is written",
        "dependencies.cc",
        "      mine.insert(mine.end(), input_writers_since.begin(), input_writers_since.end());\n",
        "",
    ),
    Mutant("order: fails before another", "dependencies.cc", "mine.push_back(last_that_may_fail)", "(void)0"),
    # FoldMatMulBatch
    Mutant("sum: what others read", "fold_batch.cc", " || of_terms.readers.size() != 1", ""),
    Mutant("sum: what is wanted", "fold_batch.cc", "of_terms.kept || ", ""),
    Mutant("sum: the largest", "fold_batch.cc", "d.kind != ReduceKind::kSum || ", ""),
    Mutant("sum: of other parts", "fold_batch.cc", "if (is_reduced && kept != 1) return false;", ""),
    Mutant("sum: of rows", "fold_batch.cc", "reduced == batches && kept == elements", "true"),
    Mutant(
        "sum: a lies otherwise",
        "fold_batch.cc",
        "if (d->a_batch_strides[0] != (d->transpose_a ? d->k * lda : d->k)) return false;",
        "",
    ),
    Mutant(
        "sum: b lies otherwise",
        "fold_batch.cc",
        "if (d->b_batch_strides[0] != (d->transpose_b ? d->k : d->k * ldb)) return false;",
        "",
    ),
    Mutant("sum: too early", "fold_batch.cc", "kind != Buffer::Kind::kComputed", "bytes == 0"),
    Mutant("sum: not longer", "fold_batch.cc", "d->k *= d->batch[0];", ""),
    # FoldPadding
    Mutant("padding: of any number", "fold_padding.cc", "some->value == 0 && ", ""),
    Mutant("padding: more is written", "fold_padding.cc", "of.writers.size() != 2", "of.writers.size() < 2"),
    Mutant(
        "padding: of an older image",
        "fold_padding.cc",
        "IsWritten(list_, uses_, copy.in[0].buffer, RangeOfInput(copy, 0), of.writers[1], reader)",
        "false",
    ),
    Mutant("padding: of channels", "fold_padding.cc", " || box.extent[channels] != d->in_channels", ""),
    Mutant("padding: of images", "fold_padding.cc", " || box.extent[0] != d->batch", ""),
    Mutant("padding: of swapped axes", "fold_padding.cc", "if (remaining != 1 || next >= 0) return false;", ""),
    Mutant("padding: none in front", "fold_padding.cc", "d->pad_before[i] += begin;", ""),
    Mutant(
        "padding: of no filter's gradient", "fold_padding.cc", " && desc->direction != Direction::kFilterGradient", ""
    ),
    # FuseReductions
    Mutant(
        "reduction: what others read", "fuse_reductions.cc", " || uses.readers.size() != 1) return -1", ") return -1"
    ),
    Mutant("reduction: what is wanted", "fuse_reductions.cc", "if (uses.kept || ", "if ("),
    Mutant(
        "reduction: in another order", "fuse_reductions.cc", "IsDense(source.shape, source.in_strides[k]) &&", "true &&"
    ),
    Mutant(
        "reduction: of a part",
        "fuse_reductions.cc",
        "source.shape.num_elements() == desc->shape.num_elements() &&",
        "true &&",
    ),
    Mutant("reduction: what another reads now", "fuse_reductions.cc", "readers.push_back(reduction)", "kept |= false"),
    Mutant(
        "reduction: of what is updated",
        "fuse_reductions.cc",
        "if (IsWritten(list_, uses_, place.buffer,",
        "if (false && IsWritten(list_, uses_, place.buffer,",
    ),
    Mutant(
        "reduction: of what its program updates", "fuse_reductions.cc", "? writer - 1 : writer", "? writer : writer"
    ),
    Mutant("reduction: dear ones twice", "fuse_reductions.cc", "excerpt.cost() > kMaxTwice", "excerpt.cost() > 400"),
    Mutant(
        "reduction: other strides",
        "fuse_reductions.cc",
        "&desc.source.in_strides[s])) return false;",
        "&desc.source.in_strides[0])) return false;",
    ),
    Mutant(
        "reduction: the wrong one goes",
        "fuse_reductions.cc",
        "if (o == output) continue;",
        "if (o != output) continue;",
    ),
    # FuseEpilogues
    Mutant(
        "epilogue: in another order",
        "fuse_epilogues.cc",
        "IsDense(desc.shape, desc.in_strides[k]) && ",
        "",
    ),
    Mutant(
        "epilogue: slow ones before reductions",
        "fuse_epilogues.cc",
        "if (WayOfEpilogue(can_, fused) > slowest_) continue;",
        "",
    ),
    Mutant("epilogue: what others read", "fuse_epilogues.cc", "uses_.buffers[c].readers.size() > 1", "false"),
    Mutant("epilogue: what is wanted", "fuse_epilogues.cc", "uses_.buffers[c].kept || ", ""),
    Mutant(
        "epilogue: of an updated matrix",
        "fuse_epilogues.cc",
        "if (IsWritten(list_, uses_, command.in[k].buffer, RangeOfInput(command, k), product, reader)) return -1;",
        "",
    ),
    Mutant(
        "epilogue: in place of its matrix",
        "fuse_epilogues.cc",
        "product, reader)) return",
        "product, reader - 1)) return",
    ),
    Mutant(
        "epilogue: in place",
        "fuse_epilogues.cc",
        "if (out.buffer == reader.in[k].buffer) return false;",
        "(void)out;",
    ),
    Mutant(
        "epilogue: another operand",
        "fuse_epilogues.cc",
        "inputs.push_back(element);",
        "inputs.insert(inputs.begin(), element);",
    ),
    # FuseQuantization
    Mutant(
        "quantized: clipped the other way",
        "quantization/fuse_quantization.cc",
        "levels, most, least};",
        "levels, least, most};",
    ),
    Mutant(
        "quantized: what others read",
        "quantization/fuse_quantization.cc",
        "!uses.kept && uses.readers.size() == 1",
        "true",
    ),
    Mutant(
        "quantized: by others' maxima", "quantization/fuse_quantization.cc", "of_magnitudes.buffer != x.buffer || ", ""
    ),
    Mutant(
        "quantized: of an older x",
        "quantization/fuse_quantization.cc",
        "std::min(first, at), last)) return false;",
        "last, last)) return false;",
    ),
    Mutant(
        "quantized: columns for rows",
        "quantization/fuse_quantization.cc",
        "if (reduced && !is_reduced && source.shape[axis] != 1) return 0;",
        "",
    ),
    Mutant(
        "quantized: one scale for all",
        "quantization/fuse_quantization.cc",
        "stride != (inner < cols ? 0 : inner / cols)",
        "false",
    ),
    Mutant(
        "quantized: to other integers",
        "quantization/fuse_quantization.cc",
        "Elementwise(cast).program->output_type(0) != DType::kInt8 || ",
        "",
    ),
    # MultiplyInBytes
    Mutant("bytes: of filters that change", "quantization/multiply_in_bytes.cc", "!hoisted_[filter->command] || ", ""),
    Mutant("bytes: ranges by channel of x", "quantization/multiply_in_bytes.cc", "x->ranges != 1 || ", ""),
    Mutant(
        "bytes: scales swapped with zeros",
        "quantization/multiply_in_bytes.cc",
        "{{Row(x_bytes, ByteRow::kScale, 1), {0}}",
        "{{Row(x_bytes, ByteRow::kZeroPoint, 1), {0}}",
    ),
    Mutant(
        "bytes: one scale for all channels",
        "quantization/multiply_in_bytes.cc",
        "{scale, {0, n == 1 ? 0 : 1}}",
        "{scale, {0, 0}}",
    ),
    Mutant("bytes: a window in the padding", "quantization/multiply_in_bytes.cc", " || !AllWindowsMeetX(*desc)", ""),
    Mutant("bytes: of more bits", "quantization/multiply_in_bytes.cc", "bits <= 8", "bits <= 10"),
    Mutant(
        "bytes: rows of others",
        "quantization/multiply_in_bytes.cc",
        "if (read.buffer != written.buffer || read.offset != written.offset ||",
        "if (",
    ),
    Mutant(
        "bytes: of a later image",
        "quantization/multiply_in_bytes.cc",
        "Insert(of.command, of.command, FakeQuantizeToBytes",
        "Insert(static_cast<int>(list_.commands.size()), of.command, FakeQuantizeToBytes",
    ),
    # Conditions of MultiplyInBytes
    Mutant("finite: sums that do not grow", "quantization/finite_values.cc", "return a + b;", "return std::max(a, b);"),
    Mutant(
        "finite: anything",
        "quantization/finite_values.cc",
        "case Opcode::kAbs:\n",
        "case Opcode::kAbs:\n    case Opcode::kExp:\n",
    ),
    Mutant(
        "finite: as bits of integers",
        "quantization/finite_values.cc",
        "if (p.type(reg) != DType::kFloat) return std::nullopt;",
        "",
    ),
    # ReadPackedWeights
    Mutant(
        "weights: whichever come last",
        "quantization/read_packed_weights.cc",
        "        if (found) return std::nullopt;\n",
        "",
    ),
    Mutant(
        "weights: of what changes",
        "quantization/read_packed_weights.cc",
        "[&](int w) { return hoisted[w]; }",
        "[](int) { return true; }",
    ),
    Mutant(
        "weights: zeros and scales swapped",
        "quantization/read_packed_weights.cc",
        "Weights{packed, scales, zero_points,",
        "Weights{packed, zero_points, scales,",
    ),
    Mutant(
        "weights: one group", "quantization/read_packed_weights.cc", "find.groups = weights.groups;", "find.groups = 1;"
    ),
    Mutant(
        "weights: rows apart",
        "quantization/read_packed_weights.cc",
        "if (d.batch[i] != 1 && d.a_batch_strides[i]",
        "if (false && d.a_batch_strides[i]",
    ),
    Mutant(
        "weights: one of a batch",
        "quantization/read_packed_weights.cc",
        "desc.m = d.m * d.batch.num_elements();",
        "desc.m = d.m;",
    ),
    Mutant(
        "weights: as if not transposed",
        "quantization/read_packed_weights.cc",
        "find.transposed = std::get",
        "find.transposed = false && std::get",
    ),
    Mutant(
        "weights: not where they are read",
        "quantization/read_packed_weights.cc",
        "finders.emplace_back(i, ",
        "finders.emplace_back(0, ",
    ),
    # HoistInvariants
    Mutant("kept: of what is written", "hoist.cc", "return of.writers.empty();", "return true;"),
    Mutant("kept: what is wanted", "hoist.cc", "of.kept || ", ""),
    Mutant(
        "kept: of one of two writers", "hoist.cc", "std::all_of(of.writers.begin()", "std::any_of(of.writers.begin()"
    ),
    Mutant("kept: read between two writes", "hoist.cc", "hoisted[r] || r > of.writers.back()", "true"),
    Mutant("kept: what is much larger", "hoist.cc", "return result > kMostTimes * sources + kAFew;", "return false;"),
    # Rematerialize
    Mutant(
        "again: from what is written since",
        "rematerialize.cc",
        "if (std::any_of(uses.writers.begin(), uses.writers.end(), in_between)) return false;",
        "(void)in_between;",
    ),
    Mutant(
        "again: from what will be written", "rematerialize.cc", "w > command && w < chain->first_reader", "w > command"
    ),
    Mutant(
        "again: what products read",
        "rematerialize.cc",
        "if (!std::all_of(far, readers.end(), [this](int r) { return ElementwiseOf(r) != nullptr; })) return false;",
        "",
    ),
    Mutant(
        "again: what is wanted", "rematerialize.cc", "if (uses.kept || uses.writers.size()", "if (uses.writers.size()"
    ),
    Mutant("again: what is small", "rematerialize.cc", "IsLarge(buffer) ? WriterOf(buffer) : -1", "WriterOf(buffer)"),
    Mutant(
        "again: of the first values",
        "rematerialize.cc",
        "if (found != again.end()) place.buffer = found->second;",
        "(void)found;",
    ),
    Mutant("again: what is nearby, too", "rematerialize.cc", "if (reader < chain.first_reader) continue;", ""),
    Mutant(
        "again: too late for some",
        "rematerialize.cc",
        "before = std::min(before, chain.first_reader);",
        "before = std::max(before, chain.first_reader);",
    ),
    Mutant(
        "again: sources for nothing",
        "rematerialize.cc",
        "for (int source : sources) saved -= list_.buffers[source].bytes;",
        "(void)sources;",
    ),
    Mutant("again: sources are always kept", "rematerialize.cc", "chain->sources.insert(place.buffer);", ""),
    Mutant(
        "again: sources are never kept", "rematerialize.cc", "|| IsKeptAnyway(place.buffer, chain->first_reader)", ""
    ),
    Mutant("again: whatever it takes", "rematerialize.cc", "&& cost <= kInstructionsPerByte * saved", ""),
    Mutant("again: all or nothing", "rematerialize.cc", "chain.sources.empty() ? *chain.commands.begin() : -1", "-1"),
    Mutant(
        "far: products count for nothing",
        "dependencies.cc",
        "heavy += IsProduct(command);",
        "heavy += std::holds_alternative<ConvolutionDesc>(command.desc);",
    ),
    # FuseElementwise
    Mutant(
        "fused: with what is far",
        "fuse_elementwise.cc",
        "if (reader < i && !distances_.AreFar(reader, i) && IsWorthOnePass(reader, i)) add(reader);",
        "if (reader < i && IsWorthOnePass(reader, i)) add(reader);",
    ),
    Mutant(
        "fused: with the reader of a short row",
        "fuse_elementwise.cc",
        "if (elements <= kFewElements) return true;",
        "return true;",
    ),
    Mutant(
        "fused: not with readers of the same",
        "fuse_elementwise.cc",
        "if (std::min(x.end, y.end) - std::max(x.begin, y.begin) >= elements) return true;",
        "",
    ),
    Mutant(
        "fused: an operand swapped",
        "fuse_elementwise.cc",
        "regs = registers->builder.Inline(p, std::move(regs));",
        "std::swap(regs[0], regs[p.num_inputs() - 1]), regs = registers->builder.Inline(p, std::move(regs));",
    ),
    Mutant("fused: the value before", "fuse_elementwise.cc", "    *old = value;\n", "    (void)value;\n"),
    Mutant(
        "fused: a value read in another order",
        "fuse_elementwise.cc",
        "place.offset != value->range.begin || !IsDense(group.shape, read.strides) || value->reg.type",
        "value->reg.type",
    ),
    Mutant("fused: reads of other places", "fuse_elementwise.cc", "a.place.offset == b.place.offset && ", ""),
    Mutant(
        "fused: reads by other strides",
        "fuse_elementwise.cc",
        "a.type == b.type &&\n           SameWalk(shape, a.strides, b.strides);",
        "a.type == b.type;",
    ),
    Mutant(
        "fused: written over before it is read",
        "fuse_elementwise.cc",
        "read.place.offset != value.range.begin || !IsDense(group.shape, read.strides) ||\n",
        "",
    ),
    Mutant(
        "fused: around what lies between",
        "fuse_elementwise.cc",
        "if (!fits || !PutSourcesBefore(g, {i}, -1)) {",
        "if (!fits) {",
    ),
    Mutant(
        "merged: around what lies between",
        "fuse_elementwise.cc",
        "if (!fits || !PutSourcesBefore(g, second, h)) return;",
        "if (!fits) return;",
    ),
    Mutant(
        "merged: not at all",
        "fuse_elementwise.cc",
        "        Merge(source, own);\n",
        "",
    ),
    Mutant(
        "fused: around what lies further off",
        "fuse_elementwise.cc",
        "          if (group_of_[b] == g) return false;\n          visit(b);\n",
        "          if (group_of_[b] == g) return false;\n",
    ),
    Mutant(
        "fused: groups that are not put in order",
        "fuse_elementwise.cc",
        "    std::stable_partition(begin, end, [&](int h) { return found.count(h) != 0; });\n",
        "    (void)begin, (void)end;\n",
    ),
    Mutant(
        "fused: what somebody wants is not stored",
        "fuse_elementwise.cc",
        "if (uses_.buffers[buffer].kept) return true;",
        "",
    ),
    Mutant(
        "fused: what others read is not stored",
        "fuse_elementwise.cc",
        "group.members.end(), reader)) return true;",
        "group.members.end(), reader)) break;",
    ),
    Mutant("fused: the order of groups", "fuse_elementwise.cc", "        ++waits[g];\n", ""),
    Mutant(
        "fused: constants of other values",
        "fuse_elementwise.cc",
        "return o.type == c.type && o.re == c.re && o.im == c.im && o.bits == c.bits;",
        "return o.type == c.type;",
    ),
    Mutant("fused: 16 bits unrounded", "fuse_elementwise.cc", "if (!value->rounded) {", "if (false) {"),
    Mutant(
        "fused: 16 bits rounded more often than needed",
        "fuse_elementwise.cc",
        "if (instr.op == Opcode::kNeg || instr.op == Opcode::kAbs) is_rounded = rounded[instr.a];",
        "",
    ),
    Mutant(
        "fused: the larger of two unrounded",
        "fuse_elementwise.cc",
        "is_rounded = rounded[instr.a] && rounded[instr.b];",
        "is_rounded = true;",
    ),
    Mutant(
        "fused: broadcasts as if dense",
        "fuse_elementwise.cc",
        "} else if (IsDense(desc.shape, desc.in_strides[k])) {",
        "} else if (!IsScalar(desc.shape, desc.in_strides[k])) {",
    ),
    # PropagateCopiesForward
    Mutant(
        "read: original written since",
        "propagate_copies.cc",
        "if (IsWritten(*list, *uses, from.buffer, RangeOfInput(command, 0), i, of_copy.readers.back())) return;",
        "",
    ),
    Mutant(
        "read: an element off",
        "propagate_copies.cc",
        "*offset = view_.offset + start_;",
        "*offset = view_.offset + start_ + (start_ > 0);",
    ),
    Mutant(
        "read: the start forgotten",
        "propagate_copies.cc",
        "c.in[k] = {from.buffer, from.offset + offset * size};",
        "c.in[k] = {from.buffer, offset * size};",
    ),
    Mutant(
        "read: a copy of two writers",
        "propagate_copies.cc",
        "of_copy.kept || of_copy.writers.size() != 1 ||",
        "of_copy.kept ||",
    ),
    Mutant("read: matrix not transposed", "propagate_copies.cc", "    desc->*transpose = !(desc->*transpose);\n", ""),
    # PropagateCopiesBackward
    Mutant(
        "written: before the old is read",
        "propagate_copies.cc",
        "    if (c.in[k].buffer == buffer && range.Overlaps(RangeOfInput(c, k))) return false;\n",
        "",
    ),
    Mutant(
        "written: what others read",
        "propagate_copies.cc",
        "source.writers.size() != 1 || source.readers.size() != 1 ||",
        "source.writers.size() != 1 ||",
    ),
    Mutant(
        "written: what somebody wants",
        "propagate_copies.cc",
        "if (uses_.buffers[from.buffer].kept || !ViewOfTarget",
        "if (!ViewOfTarget",
    ),
    Mutant(
        "written: an element off",
        "propagate_copies.cc",
        "changed.out[0] = {to.buffer, to.offset + offset",
        "changed.out[0] = {to.buffer, to.offset + (offset > 0 ? offset - 1 : 0)",
    ),
    Mutant(
        "written: to the beginning",
        "propagate_copies.cc",
        "changed.out[0] = {to.buffer, to.offset + offset",
        "changed.out[0] = {to.buffer, offset",
    ),
    Mutant(
        "written: moved over what is read later",
        "propagate_copies.cc",
        "    if (source.readers.size() > 1 && !NobodyWrites(i + 1, to.buffer, range)) return false;\n",
        "",
    ),
    Mutant(
        "written: moved over what lies there",
        "propagate_copies.cc",
        "    if (!KeepOff(source.writers[0], i, to.buffer, range)) return false;\n",
        "",
    ),
    Mutant(
        "written: moved without its offset",
        "propagate_copies.cc",
        "place = {to.buffer, to.offset + place.offset};",
        "place = {to.buffer, to.offset};",
    ),
    Mutant(
        "written: in place before a failure",
        "propagate_copies.cc",
        "WritesInput(list_, list_.commands[i]) && MayFail",
        "false && MayFail",
    ),
    # BatchMatMuls
    Mutant(
        "stacked: one behind the other but one",
        "batch_matmuls.cc",
        "const BufferSlice part{buffer, bytes * static_cast<int64_t>(t)};",
        "const BufferSlice part{buffer, bytes * static_cast<int64_t>(t > 0 ? t - 1 : 0)};",
    ),
    Mutant(
        "stacked: parts read at the beginning",
        "batch_matmuls.cc",
        "place = {c.buffer, of_c * static_cast<int64_t>(t) + place.offset};",
        "place = {c.buffer, place.offset};",
    ),
    Mutant(
        "stacked: one that depends on another",
        "batch_matmuls.cc",
        "if (!is_member[i] || hangs[i]) continue;",
        "if (!is_member[i]) continue;",
    ),
    Mutant(
        "stacked: the rest of a sum forgotten",
        "batch_matmuls.cc",
        "std::vector<BufferSlice> terms = sum.other_terms;",
        "std::vector<BufferSlice> terms;",
    ),
    Mutant(
        "stacked: what others read, too",
        "batch_matmuls.cc",
        "if (use.readers.size() != 1 || !IsAddition(use.readers[0])) return false;",
        "if (!IsAddition(use.readers[0])) return false;",
    ),
    Mutant("stacked: other weights", "batch_matmuls.cc", "      Append(b.buffer, &key);\n", ""),
    # Walk
    Mutant(
        "walk: carries into the next axis",
        "strided_view.cc",
        "if (inner < 2 || reached[j] >= end) return false;",
        "if (inner < 2) return false;",
    ),
    Mutant("walk: an offset forgotten", "strided_view.cc", "view->offset = copy.src_offset;", "view->offset = 0;"),
    Mutant(
        "walk: a part for the whole",
        "strided_view.cc",
        "|| elements * static_cast<int64_t>(copy.element_size) != bytes",
        "",
    ),
    Mutant("walk: not dense", "strided_view.cc", "if (there != DenseStrides(view->shape)) return false;", ""),
    # PlanMemory
    Mutant(
        "plan: used again too early",
        "memory_plan.cc",
        "return other.last >= first &&",
        "return other.last > first &&",
    ),
    Mutant(
        "plan: given away too early",
        "memory_plan.cc",
        "  life.last = command;",
        "  if (life.last < 0) life.last = command;",
    ),
    Mutant("plan: too small", "memory_plan.cc", "offset + life.bytes <= Offset(other)", "offset <= Offset(other)"),
    Mutant(
        "plan: in the middle, over what lives",
        "memory_plan.cc",
        "other.bytes && life.IsAtOnceWith(other);",
        "other.bytes && false;",
    ),
    Mutant(
        "plan: in the middle, aside",
        "memory_plan.cc",
        "(larger.bytes - life.bytes) / 2",
        "(larger.bytes - life.bytes) / 4",
    ),
    Mutant(
        "plan: of many, given back too early", "memory_plan.cc", "->first < lives[i].first", "->first <= lives[i].first"
    ),
    Mutant(
        "plan: of many, no gap is large enough",
        "memory_plan.cc",
        "by_bytes_.lower_bound({bytes, 0})",
        "by_bytes_.end()",
    ),
    Mutant(
        "plan: workspaces share", "memory_plan.cc", "    Touch(command.workspace, static_cast<int>(i), &lives);\n", ""
    ),
    Mutant(
        "plan: strands share places",
        "memory_plan.cc",
        "    if (strands >= 0 && strands == other.strands && strand != other.strand) return true;\n",
        "",
    ),
    Mutant("plan: given back before all strands end", "memory_plan.cc", "    life->last = last.last;\n", ""),
    Mutant(
        "plan: of many, given back before all strands end",
        "memory_plan.cc",
        "    for (Life& life : smaller) life.last = strands[life.last].last;\n",
        "",
    ),
    # BatchStretches, ShareBatch
    Mutant("stretch: the part after it", "batch_stretches.cc", " && !Overlaps(of, range, -part * step)", ""),
    Mutant(
        "stretch: parts that are not apart", "batch_stretches.cc", "!of->second.written || of->second.apart;", "true;"
    ),
    Mutant(
        "stretch: all after the first in one place",
        "batch_stretches.cc",
        "place.offset += part * steps[k];",
        "place.offset += steps[k];",
    ),
    Mutant("stretch: across the batch", "split_batch.cc", " || (d->axes >> axis & 1) != 0", ""),
    Mutant("shared: large commands", "share_batch.cc", " && operations <= commands * kMostOfCommand", ""),
    Mutant("shared: large matrices", "share_batch.cc", "command.footprint.in[1].end <= kBytesOfCore", "true"),
)
