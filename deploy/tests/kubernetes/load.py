"""Load of an ordinary client, in a pod of the cluster: requests of the Open Inference Protocol, one after the other, without an end.

Each line of output is a JSON object with the number of requests that were answered and the errors of those that were not.
"""

import json
import sys
import time

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

FOLDER = "/client/"
# Seconds between two lines.
LINE_S = 1.0


def connect(address: str):
    files = {"root_certificates": "ca.crt", "private_key": "notebook.key", "certificate_chain": "notebook.crt"}
    client = triton.InferenceServerClient(address, ssl=True, **{name: FOLDER + file for name, file in files.items()})
    with open(FOLDER + "notebook.token") as token:
        return client, {"authorization": f"Bearer {token.read()}"}


def main() -> None:
    client, headers = connect(sys.argv[1])
    # Waits for the first server, because the run may just begin.
    while True:
        try:
            (given,) = client.get_model_metadata("latest", headers=headers).inputs
            break
        except InferenceServerException:
            time.sleep(0.5)
    rows = np.zeros((1, given.shape[1]), np.uint32)
    tensor = triton.InferInput(given.name, rows.shape, "UINT32")
    tensor.set_data_from_numpy(rows)
    answered, failures, told = 0, [], time.monotonic()
    while True:
        try:
            value = client.infer("latest", [tensor], headers=headers).as_numpy("value")
            if np.isfinite(value).all():
                answered += 1
            else:
                failures.append(f"value {value}")
        except InferenceServerException as error:
            failures.append(f"{time.time():.0f}: {error}"[:300])
            time.sleep(0.1)
        if time.monotonic() - told > LINE_S:
            told = time.monotonic()
            print(json.dumps({"answered": answered, "failures": failures}), flush=True)


main()
