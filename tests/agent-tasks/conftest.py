"""Makes the helpers of the suite `agent` (scripted model server, runs of the agent loop) importable."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "agent"))
