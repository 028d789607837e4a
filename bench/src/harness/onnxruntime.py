"""ONNX Runtime alone, through its own Python package: a baseline without Minuet's code.

Arguments: model file, file of rows (int32), positions in a batch, threads, provider as in `inference.provider`. The program
prints a line when it is ready: the package's version, or the reason why it cannot work. Then, for every line with a number
of seconds, it runs batches that long and prints the number of positions.
"""

import json
import sys
import time

OPENVINO = "OpenVINOExecutionProvider"
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "openvino-f32": OPENVINO,
    "openvino-bf16": OPENVINO,
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}


def missing(reason):
    print(json.dumps({"missing": reason}), flush=True)
    sys.exit()


try:
    import numpy
    import onnxruntime
except ImportError as error:
    missing(f"{sys.executable}: {error}")

file, rows, size, threads, provider = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
name = PROVIDERS.get(provider)
if name not in onnxruntime.get_available_providers():
    missing(f"onnxruntime {onnxruntime.__version__} has no {name or provider}")
settings = {}
if name == OPENVINO:
    cpu = {"INFERENCE_PRECISION_HINT": provider.removeprefix("openvino-"), "INFERENCE_NUM_THREADS": str(threads), "NUM_STREAMS": "1"}
    settings = {"device_type": "CPU", "load_config": json.dumps({"CPU": cpu})}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
# The model is compiled for this size of batch.
plain = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).get_inputs()[0]
if isinstance(plain.shape[0], str):
    options.add_free_dimension_override_by_name(plain.shape[0], size)
session = onnxruntime.InferenceSession(file, options, providers=[(name, settings)])
if session.get_providers()[0] != name:
    missing(f"onnxruntime {onnxruntime.__version__} does not run this model by {name}")

numbers = numpy.fromfile(rows, "<i4")
batches = []
for batch in numbers.reshape(-1, size, plain.shape[1]):
    binding = session.io_binding()
    binding.bind_ortvalue_input(plain.name, onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ascontiguousarray(batch)))
    for output in session.get_outputs():
        binding.bind_output(output.name)
    batches.append(binding)
for binding in batches:
    session.run_with_iobinding(binding)
print(json.dumps({"version": onnxruntime.__version__}), flush=True)
number = 0
for line in sys.stdin:
    until, positions = time.perf_counter() + float(line), 0
    while time.perf_counter() < until:
        session.run_with_iobinding(batches[number % len(batches)])
        number += 1
        positions += size
    print(positions, flush=True)
