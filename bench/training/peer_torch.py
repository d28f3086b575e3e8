"""Peer: training with PyTorch, DDP over gloo with a process and thread each, or one process with all cores.

peer.py says how it is called; NETWORK may be gpt. Data stays in memory as it is used, and a batch is
taken from it by index, which is faster than a DataLoader. The processes of DDP meet by a file in a
folder of their own, so that no port has to be free.
"""
import os
import subprocess
import sys
import tempfile
import time

import peer


# ---- a process that trains -------------------------------------------------------------------------


def problem_of(args, rank):
    """The model with its loss, the batches of this rank, and the optimizer that goes with it."""
    import torch
    if args.network == "gpt":
        import peer_torch_gpt as problem
    else:
        import peer_torch_images as problem
    torch.manual_seed(args.seed)
    model = problem.Problem(args.network)
    rows = problem.batches(torch.Generator().manual_seed(args.seed), args.batch, rank, args.replicas)
    return model, rows, problem.optimizer


def sum_over_ranks(replicas, number):
    import torch
    total = torch.tensor(float(number), dtype=torch.float64)
    if replicas > 1:
        torch.distributed.all_reduce(total)
    return total.item()


def work(args, rank):
    import torch
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // args.replicas))
    model, rows, optimizer = problem_of(args, rank)
    if args.replicas > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{args.meet}", rank=rank,
                                             world_size=args.replicas)
        model = torch.nn.parallel.DistributedDataParallel(model)
    update = optimizer(model.parameters())

    def window(steps):
        total = torch.zeros(())
        for _ in range(steps):
            loss = model(*next(rows))
            update.zero_grad(set_to_none=True)
            loss.backward()
            update.step()
            total += loss.detach()
        return sum_over_ranks(args.replicas, total) / steps / args.replicas  # waits for all

    figures = peer.measure(window, args.steps, args.replicas * args.batch)
    figures["peak_rss_bytes"] = int(sum_over_ranks(args.replicas, peer.peak_bytes()))
    if rank == 0:
        peer.report(args, "torch", "ddp" if args.replicas > 1 else "one process", torch.__version__,
                    figures)
    if args.replicas > 1:
        torch.distributed.destroy_process_group()


# ---- the process that starts them ------------------------------------------------------------------


def launch(args):
    """Starts a process a rank. When one fails, the others, which wait for it, are ended."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, *sys.argv, "--meet", os.path.join(folder, "meet"), "--rank"]
        environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ}
        workers = [subprocess.Popen([*words, str(rank)], env=environment)
                   for rank in range(args.replicas)]
        try:
            while any(w.poll() is None for w in workers) and not any(w.poll() for w in workers):
                time.sleep(0.05)
        finally:
            for w in workers:
                if w.poll() is None:
                    w.kill()
    return 1 if any(w.wait() for w in workers) else 0


def main():
    p = peer.parser(__doc__)
    p.add_argument("--rank", type=int, help="of a process that was started for this; with --meet")
    p.add_argument("--meet", help="a file, not there yet, by which ranks find each other")
    args = p.parse_args()
    if args.rank is None and args.replicas > 1:
        return launch(args)
    work(args, args.rank or 0)
    return 0


sys.exit(main())
