"""A client of the analysis service made from the .proto file alone: analysis.py PROTO ADDRESS TOKEN CASE. Prints its answers as JSON."""

import json
import sys
import tempfile
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToDict
from grpc_tools import protoc

proto, address, token, case = sys.argv[1:]
folder = tempfile.mkdtemp()
arguments = ["protoc", f"-I{Path(proto).parent}", f"--python_out={folder}", f"--grpc_python_out={folder}", proto]
assert protoc.main(arguments) == 0
sys.path.insert(0, folder)
import analysis_pb2 as messages  # noqa: E402
import analysis_pb2_grpc as services  # noqa: E402

metadata = [("authorization", f"Bearer {token}")] if token else []
Request, Query = messages.AnalyzeRequest, messages.AnalysisQuery


def printed(message):
    print(json.dumps(MessageToDict(message, preserving_proto_field_name=True)), flush=True)


with grpc.insecure_channel(address) as channel:
    stub = services.AnalysisStub(channel)
    try:
        printed(stub.DescribeAnalysis(messages.DescribeAnalysisRequest(), metadata=metadata))
        requests = {
            "answers": lambda: [
                Request(id="all", query=Query(moves=["e4", "e5"], turns=[0, 1, 2], visits=60, include=["priors", "values", "tree"])),
                Request(id="mate", query=Query(start="6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", visits=300, lines=2)),
                Request(id="none", query=Query(visits=0)),
                Request(id="rules", query=Query(rules='{"castling": false}')),
                Request(id="empty"),
            ],
            "many": lambda: [
                request
                for number in range(400)
                for request in (
                    Request(id=str(number), query=Query(moves=["e4"], visits=1 + number % 50, seed=number, report_ms=1)),
                    Request(id=f"c{number}", cancel=str(number // 2)),
                    Request(id=f"p{number}", priority=messages.PriorityChange(of=str(number), priority=number % 3)),
                )
            ],
        }[case]
        for reply in stub.Analyze(iter(requests()), metadata=metadata):
            printed(reply)
    except grpc.RpcError as error:
        print(json.dumps({"code": error.code().name, "details": error.details()}))
