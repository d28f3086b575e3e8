"""What growth is set beside. Both lines begin at what the first point of a sweep measured. Pure.

Time of a step: proportional to the work, which is the operations of a replica's step (forward, and
twice that backward) times the turns that devices take: replicas / devices, rounded up. Fixed costs make
the first point dear, so that later points may well stay below the line.

Memory: what the first point used beyond its model, plus 16 bytes a parameter (weights, one gradient and
Adam's two slots exist once, for any number of replicas), plus 4 bytes for each number that a sample and its layers'
outputs are, times the batch, for each replica that runs at once; those that wait for their turn
need nothing. Backward gets no memory of its own: its values can take the place of what is done with.
"""
import dataclasses

import network

DEVICES = 2
BYTES_OF_PARAMETER, BYTES_OF_NUMBER = 16, 4


@dataclasses.dataclass(frozen=True)
class Point:
    x: int           # on the sweep's axis
    network: str
    replicas: int
    batch: int       # of a replica
    steps: int

    @property
    def work(self):
        """Operations of a step, one after the other."""
        turns = -(-self.replicas // DEVICES)
        return turns * self.batch * network.operations(self.network)

    @property
    def model_bytes(self):
        at_once = min(self.replicas, DEVICES)
        return (BYTES_OF_PARAMETER * network.parameters(self.network)
                + BYTES_OF_NUMBER * at_once * self.batch * network.outputs(self.network))


def beside(points, runs):
    """Rows of a sweep: what was measured at each point, and the ideal."""
    def seconds(point, run):
        return point.replicas * point.batch / run["samples_per_second"]

    first_seconds, first_bytes = seconds(points[0], runs[0]), runs[0]["peak_rss_bytes"]
    rows = []
    for point, run in zip(points, runs):
        took = seconds(point, run)
        rows.append({
            "x": point.x, "network": point.network, "parameters": network.parameters(point.network),
            "replicas": point.replicas, "batch": point.batch,
            "samples_per_second": run["samples_per_second"],
            "operations_per_second": run["samples_per_second"] * network.operations(point.network),
            "seconds": took, "ideal_seconds": first_seconds * point.work / points[0].work,
            "bytes": run["peak_rss_bytes"],
            "ideal_bytes": first_bytes + point.model_bytes - points[0].model_bytes})
    return rows
