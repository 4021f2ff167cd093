"""The sources that the speed hooks were tested with. Generated: `tools/hook_digests.py` writes it."""

# ruff: noqa: E501
DIGESTS: dict[str, dict[str, str]] = {
    "keras.src.backend.tensorflow.trainer:TFEpochIterator.__init__": {
        "794703988bd2": "3.8.0 to 3.15.1",
    },
    "keras.src.backend.tensorflow.trainer:TFEpochIterator._get_iterator": {
        "15980904afec": "3.8.0 to 3.15.1",
    },
    "keras.src.backend.tensorflow.trainer:TensorFlowTrainer.predict": {
        "87a1a3794730": "3.8.0",
        "367ec975df98": "3.9.0 to 3.10.0",
        "994b523efcb6": "3.11.0 to 3.15.1",
    },
    "keras.src.trainers.data_adapters.array_data_adapter:ArrayDataAdapter.__init__": {
        "8d643d010ed9": "3.8.0 to 3.11.3",
        "6ce4392c3a5a": "3.12.0 to 3.15.1",
    },
    "keras.src.trainers.data_adapters.array_data_adapter:ArrayDataAdapter.get_tf_dataset": {
        "4e668a912454": "3.8.0 to 3.15.1",
    },
    "keras.src.trainers.data_adapters.array_slicing:convert_to_sliceable": {
        "81aa9a7d0455": "3.8.0 to 3.15.1",
    },
    "keras.src.trainers.epoch_iterator:EpochIterator._enumerate_iterator": {
        "48038425f7a9": "3.8.0 to 3.10.0",
        "91f0f4812558": "3.11.0 to 3.15.1",
    },
    "tensorflow.core.function.polymorphism.function_type:FunctionType.__hash__": {
        "bba7e9a9bee9": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.core.function.polymorphism.function_type:FunctionType.pack_output": {
        "99a951bd78a6": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.core.function.polymorphism.function_type:FunctionType.unpack_inputs": {
        "b824d98e7f14": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.core.function.polymorphism.function_type:sanitize_arg_name": {
        "380462652d18": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.dataset_ops:DatasetV2.__iter__": {
        "a3d8d3bcf1d0": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.iterator_ops:OwnedIterator.__init__": {
        "e66478e210c1": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.iterator_ops:OwnedIterator.__next__": {
        "113f9542caea": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.iterator_ops:OwnedIterator._create_iterator": {
        "29429047dac9": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.iterator_ops:OwnedIterator._next_internal": {
        "bf7ad742948e": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.optional_ops:_OptionalImpl.__init__": {
        "e62ce144da80": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.optional_ops:_OptionalImpl.get_value": {
        "dd7634b6fcac": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.ops.optional_ops:_OptionalImpl.has_value": {
        "f8fab2692c77": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.util.structure:from_compatible_tensor_list": {
        "31277b4212e4": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.util.structure:from_tensor_list": {
        "72d8935ce354": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.util.structure:get_flat_tensor_shapes": {
        "91d44e0fdefb": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.data.util.structure:get_flat_tensor_types": {
        "03cbe311c1d9": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.cancellation:context": {
        "98d20f729c9a": "2.19.1 to 2.21.0",
        "ca59e73bbec6": "2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context._clear_caches": {
        "927625cd79e3": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context._set_global_seed": {
        "8e54c30b3194": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.call_function": {
        "466a410cdbf1": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.clear_kernel_cache": {
        "33abcda5c8eb": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.device_name": {
        "7c0124baf654": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.enable_collective_ops": {
        "7f6468c53579": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.function_call_options": {
        "59f0651b976a": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.is_async": {
        "39640a6408a4": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.op_callbacks": {
        "38da24387005": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.remove_function": {
        "1e035d5513a4": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.set_server_def": {
        "122e202e65d4": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:Context.update_server_def": {
        "ca88e3a6eb6c": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:FunctionCallOptions.__init__": {
        "11f486b827f9": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:context": {
        "d87a168e896e": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:context_safe": {
        "a9d74e256be7": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.context:executing_eagerly": {
        "1acf59059594": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.execute:quick_execute": {
        "223d4a835174": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.atomic_function:AtomicFunction.call_flat": {
        "4b2e65299825": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.atomic_function:AtomicFunction.call_preflattened": {
        "8a033dc0fa01": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.atomic_function:InterpolateRuntimeError.__exit__": {
        "7cc2febcdfe6": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction.__call__": {
        "e8a469812ac9": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction._call_flat": {
        "8c5830bcf4d6": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction._call_impl": {
        "410573f028b5": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction._call_with_flat_signature": {
        "5d5bd4d7b77a": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction._call_with_structured_signature": {
        "70bdea4418e5": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction.captured_inputs": {
        "5d30453588ce": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction.replace_capture_with_deferred_capture": {
        "aa4496cd043c": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction.set_external_captures": {
        "7f8008f1d58b": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.function_type_utils:canonicalize_function_inputs": {
        "9fb3e8395f01": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function.__call__": {
        "d54317dcfebc": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function.__init__": {
        "767b7d170af7": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function._call": {
        "8e587f5edd2b": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function._run_functions_eagerly": {
        "ae2b87592880": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:_FrequentTracingDetector.called_without_tracing": {
        "01c7c4505eff": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:_FrequentTracingDetectorManager._get_detector": {
        "e6b0707364f6": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:_FrequentTracingDetectorManager.called_without_tracing": {
        "561ae56bcd66": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.tracing_compilation:call_function": {
        "098be69e3632": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.eager.polymorphic_function.tracing_compilation:trace_function": {
        "386901f9fd47": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.framework.constant_op:convert_to_eager_tensor": {
        "cb4f67f78959": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.framework.ops:Graph._distribution_strategy_stack": {
        "9b96f9af446b": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.framework.ops:_DefaultGraphStack.get_default": {
        "9b00c2864534": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.framework.ops:_EagerTensorBase._numpy": {
        "2f2682b921cb": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.framework.ops:device": {
        "80729a40cc02": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.framework.ops:get_default_graph": {
        "5fb187bfb82e": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.ops.gen_dataset_ops:iterator_get_next": {
        "6621cead9918": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.ops.gen_optional_ops:optional_get_value": {
        "cd78529d9fd6": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.ops.gen_optional_ops:optional_has_value": {
        "2fd62dd1be75": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.saved_model.load:_WrapperFunction.__init__": {
        "f8ca41f7634e": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.saved_model.load:_WrapperFunction._call_flat": {
        "ea0bdc6dd456": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.saved_model.save_context:SaveContext.in_save_context": {
        "ccf5d11a1376": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.saved_model.save_context:in_save_context": {
        "a79951621399": "2.19.1 to 2.22.0rc0",
    },
    "tensorflow.python.util.traceback_utils:filter_traceback": {
        "6356b748adc7": "2.19.1 to 2.22.0rc0",
    },
}
