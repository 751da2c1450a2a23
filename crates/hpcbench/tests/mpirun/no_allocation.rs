//! The timed loop allocates nothing.

use hpcbench_collectives::mpi::Mpi;
use hpcbench_collectives::{Buffers, Call, Communicator, Exchange};
use hpcbench_measure::{Loop, Recorder, Sync, time_block};
use hpcbench_model::{DType, RedOp, collective};
use hpcbench_world::{Progress, Source, World};

use crate::common::on_ranks;

const ITERATIONS: usize = 100;

fn call(name: &str, dtype: DType, redop: Option<RedOp>, in_place: bool, ranks: usize) -> Call {
    let collective = collective::by_name(name).unwrap();
    let layout = (collective.layout)(3000, dtype.size(), ranks);
    Call { collective, dtype, redop, root: 0, layout, in_place, exchange: Exchange::default() }
}

/// Calls that differ in what of ours runs inside: user-defined operations, division, copies,
/// several steps, requests.
fn calls(ranks: usize) -> Vec<Call> {
    let reduction = |dtype, op, in_place| call("allreduce", dtype, Some(op), in_place, ranks);
    let mut calls = vec![
        reduction(DType::Float, RedOp::Sum, false),
        reduction(DType::Half, RedOp::Prod, false),
        reduction(DType::Bfloat16, RedOp::Max, true),
        reduction(DType::Half, RedOp::Avg, false),
        reduction(DType::Int8, RedOp::Avg, true),
        call("pingpong", DType::Float, None, false, ranks),
    ];
    let moving =
        ["allgather", "alltoall", "broadcast", "gather", "scatter", "sendrecv", "hypercube"];
    calls.extend(moving.map(|name| call(name, DType::Float, None, false, ranks)));
    calls.extend(moving.map(|name| call(name, DType::Float, None, true, ranks)));
    for two_way in [false, true] {
        let pingpong = call("pingpong", DType::Float, None, false, ranks);
        calls.push(Call { exchange: Exchange { window: Some(8), two_way }, ..pingpong });
    }
    calls
}

fn count_allocations() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(counted.count_total, 1, "the counter counts");

    let world = World::start().expect("MPI starts");
    let mpi = Mpi::new(&world).expect("a communicator");
    let (recorder, progress) = (Recorder::default(), Progress::default());
    for call in calls(world.size()) {
        let mut buffers = Buffers::new(1 << 16, 0).unwrap();
        let mut run = mpi.prepare(&call, &mut buffers).unwrap();
        for sync in [Sync::None, Sync::Barrier, Sync::BarrierTimed] {
            for (agg_iters, source) in
                [(1, Source::best()), (1, Source::Monotonic), (3, Source::best())]
            {
                let how = Loop { sync, agg_iters, source };
                let allocated = allocation_counter::measure(|| {
                    time_block(how, ITERATIONS, &mut run, &mpi, &recorder, &progress).unwrap();
                });
                assert_eq!(allocated.count_total, 0, "{how:?} {call:?}: {allocated:?}");
            }
        }
    }
}

#[test]
fn in_any_call() {
    on_ranks(2, "no_allocation::in_any_call", count_allocations);
}
