"""Drives the inference server with NVIDIA's public client, and compares every number with ONNX Runtime called directly.

    client.py ADDRESS FOLDER

FOLDER contains rows.onnx (input: index rows), planes.onnx (input: planes), layout.json, rows.json. The server has the same
weights under `latest`, and others under `best`. The last line of output is JSON with the counts of
comparisons and the largest difference.
"""

import json
import queue
import sys
from pathlib import Path

import grpc
import numpy as np
import onnxruntime
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

BOUND = 1e-5
compared = {"numbers": 0, "largest": 0.0, "refusals": 0}


def expand(layout, rows):
    """Expand rows to planes: a second implementation."""
    planes = np.zeros((len(rows), layout["planes"], layout["height"], layout["width"]), np.float32)
    flat = planes.reshape(len(rows), -1)
    for position, row in enumerate(rows):
        flat[position, row[: layout["entries"]]] = 1
        for constant, value in zip(layout["constants"], row[layout["entries"] :]):
            planes[position, constant["plane"]] = np.float32(value) / np.float32(constant["divisor"])
    planes[:, layout["ones"]] = 1
    return planes


def same(found, expected, what):
    assert found.shape == expected.shape and found.dtype == np.float32, (what, found.shape, expected.shape, found.dtype)
    apart = float(np.abs(found - expected).max())
    assert apart <= BOUND, f"{what}: {apart} apart"
    compared["numbers"] += found.size
    compared["largest"] = max(compared["largest"], apart)


def tensor(name, numbers, datatype):
    given = triton.InferInput(name, numbers.shape, datatype)
    given.set_data_from_numpy(numbers)
    return given


def refused(code, words, call):
    """Check that the call is refused with this code and that the message contains these words."""
    try:
        call()
    except InferenceServerException as error:
        status, message = error.status(), error.message()
    except grpc.RpcError as error:
        status, message = str(error.code()), error.details()
    else:
        raise AssertionError(f"not refused: {words}")
    assert code in status, (code, status, message)
    assert all(word in message for word in words), (words, message)
    compared["refusals"] += 1


def check_description(client, layout):
    assert client.is_server_live() and client.is_server_ready()
    server = client.get_server_metadata()
    assert server.name == "minuet" and "model_repository" in server.extensions, server
    assert client.is_model_ready("latest") and not client.is_model_ready("nobody")
    row_length = layout["entries"] + len(layout["constants"])
    for name, given, datatype, shape in [
        ("latest", "indices", "UINT32", [-1, row_length]),
        ("latest_dense", "planes", "FP32", [-1, layout["planes"], layout["height"], layout["width"]]),
    ]:
        metadata = client.get_model_metadata(name)
        assert metadata.name == name and len(metadata.versions) == 1, metadata
        assert [(i.name, i.datatype, list(i.shape)) for i in metadata.inputs] == [(given, datatype, shape)], metadata
        outputs = [(o.name, o.datatype, list(o.shape)) for o in metadata.outputs]
        assert outputs == [("policy_logits", "FP32", [-1, layout["actions"]]), ("value", "FP32", [-1, 1])], metadata
        config = client.get_model_config(name).config
        assert config.max_batch_size == 64 and list(config.input[0].dims) == shape[1:], config
        assert config.backend == "onnxruntime" and config.output[1].dims == [1], config
    return metadata.versions[0]


def check_numbers(client, layout, rows, truth, version):
    logits, values = truth
    for datatype, kind in [("UINT32", np.uint32), ("INT32", np.int32)]:
        answer = client.infer("latest", [tensor("indices", rows.astype(kind), datatype)], request_id="seven")
        response = answer.get_response()
        assert response.id == "seven" and response.model_version == version, response.model_version
        same(answer.as_numpy("policy_logits"), logits, f"logits, {datatype}")
        same(answer.as_numpy("value"), values, f"value, {datatype}")
    planes = tensor("planes", expand(layout, rows), "FP32")
    for name in ["latest_dense", "latest"]:
        answer = client.infer(name, [planes], model_version=version)
        same(answer.as_numpy("policy_logits"), logits, "logits of planes")
        same(answer.as_numpy("value"), values, "value of planes")
    only = client.infer("latest", [tensor("indices", rows, "UINT32")], outputs=[triton.InferRequestedOutput("value")])
    assert [output.name for output in only.get_response().outputs] == ["value"]
    same(only.as_numpy("value"), values, "value alone")


def check_priors(client, layout, rows, truth):
    logits, values = truth
    generator = np.random.default_rng(5)
    width = 5
    legal = np.full((len(rows), width), -1, np.int32)
    expected = np.zeros((len(rows), width), np.float32)
    for position in range(len(rows)):
        count = int(generator.integers(1, width + 1))
        places = generator.choice(width, count, replace=False)
        actions = generator.choice(layout["actions"], count, replace=False)
        legal[position, places] = actions
        exps = np.exp(logits[position, actions].astype(np.float64))
        expected[position, places] = exps / exps.sum()
    given = [tensor("indices", rows, "UINT32"), tensor("legal_actions", legal, "INT32")]
    answer = client.infer("latest", given)
    same(answer.as_numpy("priors"), expected, "priors")
    same(answer.as_numpy("value"), values, "value with priors")
    every = np.tile(np.arange(layout["actions"], dtype=np.uint32), (len(rows), 1))
    given[1] = tensor("legal_actions", every, "UINT32")
    found = client.infer("latest", given).as_numpy("priors")
    exps = np.exp(logits.astype(np.float64))
    same(found, (exps / exps.sum(axis=1, keepdims=True)).astype(np.float32), "priors of all")


def check_typed(stub, rows, planes, truth):
    """Send typed contents, which the client library never does; the answer is typed too."""
    logits, values = truth
    for name, datatype, numbers, field in [
        ("indices", "UINT32", rows, "uint_contents"),
        ("indices", "INT32", rows, "int_contents"),
        ("planes", "FP32", planes, "fp32_contents"),
    ]:
        request = service_pb2.ModelInferRequest(model_name="latest")
        given = request.inputs.add(name=name, datatype=datatype, shape=numbers.shape)
        getattr(given.contents, field).extend(numbers.flatten().tolist())
        response = stub.ModelInfer(request)
        assert not response.raw_output_contents
        for output, expected in zip(response.outputs, (logits, values)):
            found = np.array(output.contents.fp32_contents, np.float32).reshape(list(output.shape))
            same(found, expected, f"typed {name}")


def check_many(client, rows, truth):
    """Send many requests at the same time: asynchronous calls, and a stream."""
    logits, values = truth
    answers = queue.Queue()
    for position in range(len(rows)):
        given = [tensor("indices", rows[position : position + 1], "UINT32")]
        client.async_infer("latest", given, lambda result, error: answers.put((result, error)), request_id=str(position))
    client.start_stream(lambda result, error: answers.put((result, error)))
    for position in range(len(rows)):
        client.async_stream_infer("latest", [tensor("indices", rows[position : position + 1], "UINT32")], request_id=str(position))
    seen = []
    for _ in range(2 * len(rows)):
        result, error = answers.get(timeout=60)
        assert error is None, error
        position = int(result.get_response().id)
        seen.append(position)
        same(result.as_numpy("policy_logits"), logits[position : position + 1], f"logits of {position}")
        same(result.as_numpy("value"), values[position : position + 1], f"value of {position}")
    assert sorted(seen) == sorted(2 * list(range(len(rows))))
    client.async_stream_infer("nobody", [tensor("indices", rows[:1], "UINT32")])
    result, error = answers.get(timeout=60)
    assert result is None and "nobody" in str(error), (result, error)
    client.async_stream_infer("latest", [tensor("indices", rows[:1], "UINT32")])
    assert answers.get(timeout=60)[1] is None, "one refusal ended the stream"
    client.stop_stream()


def check_refusals(client, stub, layout, rows):
    def infer(*given, name="latest", **more):
        return lambda: client.infer(name, list(given), **more)

    good = tensor("indices", rows, "UINT32")
    invalid = "INVALID_ARGUMENT"
    refused("NOT_FOUND", ["unknown model", "'nobody' is not found"], infer(good, name="nobody"))
    refused("NOT_FOUND", ["'latest' version 9 is not found"], infer(good, model_version="9"))
    refused(invalid, ["does not name a model"], infer(good, name=""))
    refused(invalid, ["'indices'", "UINT32 or INT32", "INT64"], infer(tensor("indices", rows.astype(np.int64), "INT64")))
    refused(invalid, ["'indices'", f"[-1, {rows.shape[1]}]"], infer(tensor("indices", rows[:, 1:].copy(), "UINT32")))
    refused(invalid, ["'indices'"], infer(tensor("indices", rows.flatten(), "UINT32")))
    refused(invalid, ["input 'indices'"], infer())
    refused(invalid, ["unexpected input 'boards'"], infer(tensor("boards", rows, "UINT32")))
    refused(invalid, ["65", "64"], infer(tensor("indices", np.repeat(rows, 65, axis=0)[:65], "UINT32")))
    output = [triton.InferRequestedOutput("moves")]
    refused(invalid, ["unexpected output 'moves'"], infer(good, outputs=output))
    refused(invalid, ["'legal_actions'"], infer(good, outputs=[triton.InferRequestedOutput("priors")]))
    refused(invalid, ["parameter 'classification'"], infer(good, outputs=[triton.InferRequestedOutput("value", class_count=2)]))
    wrong = rows.copy()
    wrong[2, 1] = 64 * 64
    refused(invalid, ["position 2", "value 1"], infer(tensor("indices", wrong, "UINT32")))
    wrong = rows.astype(np.int32)
    wrong[1, 0] = -1
    refused(invalid, ["position 1", "negative"], infer(tensor("indices", wrong, "INT32")))
    nothing = np.full((len(rows), 2), -1, np.int32)
    refused(invalid, ["position 0", "no legal"], infer(good, tensor("legal_actions", nothing, "INT32")))
    too_few = np.zeros((len(rows) - 1, 2), np.int32)
    refused(invalid, ["'legal_actions'"], infer(good, tensor("legal_actions", too_few, "INT32")))
    beyond = np.full((len(rows), 1), layout["actions"], np.int32)
    refused(invalid, ["position 0", "action"], infer(good, tensor("legal_actions", beyond, "INT32")))
    for value, words in [(np.nan, "not finite"), (np.inf, "not finite"), (1e-40, "denormal"), (0.3, "expected 1")]:
        planes = expand(layout, rows)
        planes[1, layout["sparse"][0], 3, 4] = value
        refused(invalid, ["'planes'", "position 1", "square 52", words], infer(tensor("planes", planes, "FP32"), name="latest_dense"))
    short = service_pb2.ModelInferRequest(model_name="latest", raw_input_contents=[b"123"])
    short.inputs.add(name="indices", datatype="UINT32", shape=rows.shape)
    refused(invalid, ["3 bytes", f"needs {rows.size * 4}"], lambda: stub.ModelInfer(short))
    # Rows that are not in the cache.
    fresh = rows.copy()
    fresh[:, [0, 1]] = fresh[:, [1, 0]]
    refused("UNAVAILABLE", ["Request timeout expired"], infer(tensor("indices", fresh, "UINT32"), timeout=1))
    refused("UNIMPLEMENTED", [], lambda: client.get_system_shared_memory_status())


def check_repository(client, rows, best):
    listed = client.get_model_repository_index().models
    assert [(model.name, model.state) for model in listed] == [("best", "READY"), ("latest", "READY")], listed
    assert client.is_model_ready("best")
    answer = client.infer("best", [tensor("indices", rows, "UINT32")])
    same(answer.as_numpy("policy_logits"), best[0], "logits of another model")
    same(answer.as_numpy("value"), best[1], "value of another model")
    # The configuration names the served models, so none is loaded or unloaded by a request.
    refused("UNIMPLEMENTED", [], lambda: client.load_model("best"))
    refused("UNIMPLEMENTED", [], lambda: client.unload_model("best"))


def main():
    address, folder = sys.argv[1], Path(sys.argv[2])
    layout = json.loads((folder / "layout.json").read_text())
    rows = np.array(json.loads((folder / "rows.json").read_text()), np.uint32)

    def direct(file, **given):
        session = onnxruntime.InferenceSession(folder / file, providers=["CPUExecutionProvider"])
        return session.run(["policy_logits", "value"], given)

    truth = direct("rows.onnx", indices=rows.astype(np.int32))
    planes = expand(layout, rows)
    for found, expected in zip(direct("planes.onnx", planes=planes), truth):
        same(found, expected, "ONNX Runtime with planes and with rows")
    best = direct("best.onnx", indices=rows.astype(np.int32))

    client = triton.InferenceServerClient(address)
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(address))
    version = check_description(client, layout)
    check_numbers(client, layout, rows, truth, version)
    check_priors(client, layout, rows, truth)
    check_typed(stub, rows, planes, truth)
    check_many(client, rows, truth)
    check_refusals(client, stub, layout, rows)
    check_repository(client, rows, best)
    client.close()
    print(json.dumps(compared))


main()
