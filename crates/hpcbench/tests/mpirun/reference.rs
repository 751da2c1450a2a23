//! Every collective against a plain reference: random data, and results worked out here from all
//! ranks' inputs without any of the program's own expectations.

use half::{bf16, f16};
use hpcbench_collectives::mpi::Mpi;
use hpcbench_collectives::{Buffers, Call, Communicator, Exchange};
use hpcbench_model::{Collective, DType, InPlace, RedOp, collective};
use hpcbench_world::World;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{Family, crawls, on_ranks, own_family};
use crate::run::known_wrong;

/// Elements asked for: few, with every root; and more than any block that reductions work in.
const COUNTS: [usize; 3] = [0, 37, 1100];
/// Bytes behind each message that nothing may touch.
const GUARD: usize = 64;
/// What is in a receive buffer where nothing was received.
const POISON: u8 = 0xa5;

/// An element as a number of which the arithmetic is exact (integers) or far finer (floats).
#[derive(Clone, Copy, Debug)]
enum Number {
    Int(i128),
    Real(f64),
}

/// Smallest and largest integer of a type; `None` for floating types.
fn range(dtype: DType) -> Option<(i128, i128)> {
    Some(match dtype {
        DType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DType::Uint8 => (0, u8::MAX.into()),
        DType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DType::Uint32 => (0, u32::MAX.into()),
        DType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DType::Uint64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Largest relative error of rounding to a floating type.
fn roundoff(dtype: DType) -> f64 {
    let bits = match dtype {
        DType::Bfloat16 => 8,
        DType::Half => 11,
        DType::Float => 24,
        _ => 53,
    };
    2.0_f64.powi(-bits)
}

/// The element's bytes; a real number is rounded to the type.
fn encode(dtype: DType, number: Number) -> Vec<u8> {
    match (number, dtype) {
        // Two's complement: the low bytes are those of the narrower type.
        (Number::Int(value), _) => value.to_le_bytes()[..dtype.size()].to_vec(),
        (Number::Real(value), DType::Half) => f16::from_f64(value).to_le_bytes().to_vec(),
        (Number::Real(value), DType::Bfloat16) => bf16::from_f64(value).to_le_bytes().to_vec(),
        (Number::Real(value), DType::Float) => (value as f32).to_le_bytes().to_vec(),
        (Number::Real(value), _) => value.to_le_bytes().to_vec(),
    }
}

fn decode(dtype: DType, bytes: &[u8]) -> Number {
    match dtype {
        DType::Half => Number::Real(f16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
        DType::Bfloat16 => Number::Real(bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
        DType::Float => Number::Real(f32::from_le_bytes(bytes.try_into().unwrap()).into()),
        DType::Double => Number::Real(f64::from_le_bytes(bytes.try_into().unwrap())),
        DType::Int8 => Number::Int(i8::from_le_bytes(bytes.try_into().unwrap()).into()),
        DType::Uint8 => Number::Int(bytes[0].into()),
        DType::Int32 => Number::Int(i32::from_le_bytes(bytes.try_into().unwrap()).into()),
        DType::Uint32 => Number::Int(u32::from_le_bytes(bytes.try_into().unwrap()).into()),
        DType::Int64 => Number::Int(i64::from_le_bytes(bytes.try_into().unwrap()).into()),
        DType::Uint64 => Number::Int(u64::from_le_bytes(bytes.try_into().unwrap()).into()),
    }
}

/// A rank's random operand, so small that no result overflows.
fn operand(dtype: DType, op: RedOp, rank: usize, ranks: usize, random: &mut ChaCha8Rng) -> Number {
    let Some((min, max)) = range(dtype) else {
        return Number::Real(random.random_range(-2.0..2.0));
    };
    let ranks = ranks as i128;
    Number::Int(match op {
        RedOp::Sum | RedOp::Avg => random.random_range(min / ranks..=max / ranks),
        // 3 to the fourth power is below 128.
        RedOp::Prod if rank < 4 => random.random_range((-3).max(min)..=3),
        RedOp::Prod if min < 0 => random.random_range(0..2) * 2 - 1,
        RedOp::Prod => 1,
        RedOp::Max | RedOp::Min => random.random_range(min..=max),
    })
}

/// A rank's whole input as bytes, the same wherever it is asked for.
fn input(call: &Call, case: u64, rank: usize, ranks: usize) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(case << 8 | rank as u64);
    match call.redop {
        None => {
            let mut bytes = vec![0; call.layout.send * call.dtype.size()];
            random.fill_bytes(&mut bytes);
            bytes
        }
        Some(op) => (0..call.layout.send)
            .flat_map(|_| encode(call.dtype, operand(call.dtype, op, rank, ranks, &mut random)))
            .collect(),
    }
}

/// The `index`-th of equal parts.
fn part(bytes: &[u8], index: usize, parts: usize) -> &[u8] {
    let length = bytes.len() / parts;
    &bytes[index * length..(index + 1) * length]
}

/// What a rank must have received of data that is only moved; `None` where it receives nothing.
fn moved(call: &Call, me: usize, inputs: &[Vec<u8>]) -> Option<Vec<u8>> {
    let (ranks, root) = (inputs.len(), call.root);
    let one_way = call.exchange.window.is_some() && !call.exchange.two_way;
    let from = match call.collective.name {
        "allgather" | "hypercube" => return Some(inputs.concat()),
        "gather" => return (me == root).then(|| inputs.concat()),
        "alltoall" => {
            let parts = inputs.iter().map(|input| part(input, me, ranks));
            return Some(parts.collect::<Vec<_>>().concat());
        }
        "broadcast" => &inputs[root][..],
        "scatter" => part(&inputs[root], me, ranks),
        "sendrecv" => &inputs[(me + ranks - 1) % ranks][..],
        "pingpong" => match me {
            // A window one way: these only send.
            me if me < ranks / 2 && one_way => return None,
            me if me < ranks / 2 => &inputs[me + ranks / 2][..],
            me if me < ranks / 2 * 2 => &inputs[me - ranks / 2][..],
            _ => return None,
        },
        other => panic!("no reference for {other}"),
    };
    Some(from.to_vec())
}

/// Compares one reduced element with its operands'.
fn assert_reduced(dtype: DType, op: RedOp, operands: &[Number], got: Number, words: &str) {
    let ranks = operands.len();
    if let Number::Int(got) = got {
        let ints = operands.iter().map(|number| match number {
            Number::Int(value) => *value,
            Number::Real(_) => unreachable!("an integer type"),
        });
        let expected = match op {
            RedOp::Sum => ints.sum(),
            RedOp::Avg => ints.sum::<i128>() / ranks as i128,
            RedOp::Prod => ints.product(),
            RedOp::Max => ints.max().unwrap(),
            RedOp::Min => ints.min().unwrap(),
        };
        return assert_eq!(got, expected, "{words}: {operands:?}");
    }
    let Number::Real(got) = got else { unreachable!("a floating type") };
    let reals = || {
        operands.iter().map(|number| match number {
            Number::Real(value) => *value,
            Number::Int(_) => unreachable!("a floating type"),
        })
    };
    let sizes: f64 = reals().map(f64::abs).sum();
    // Each of the n−1 steps rounds once, whatever the order; twice that for the reference's own.
    let error = 2.0 * ranks as f64 * roundoff(dtype);
    let (expected, allowed) = match op {
        RedOp::Sum => (reals().sum(), error * sizes),
        RedOp::Avg => (reals().sum::<f64>() / ranks as f64, (error + roundoff(dtype)) * sizes),
        // Half's smallest numbers are 2^-24 apart.
        RedOp::Prod => {
            let product = reals().product::<f64>();
            (product, error * product.abs() + 2.0_f64.powi(-24) * ranks as f64)
        }
        RedOp::Max => (reals().fold(f64::MIN, f64::max), 0.0),
        RedOp::Min => (reals().fold(f64::MAX, f64::min), 0.0),
    };
    assert!((got - expected).abs() <= allowed, "{words}: {operands:?} gave {got}, not {expected}");
}

/// Compares what a rank received of a reduction, from element `from` of it on.
fn assert_all_reduced(call: &Call, from: usize, inputs: &[Vec<u8>], got: &[u8], words: &str) {
    let (size, op) = (call.dtype.size(), call.redop.unwrap());
    for (index, element) in got.chunks(size).enumerate() {
        let at = (from + index) * size;
        let operands: Vec<Number> =
            inputs.iter().map(|input| decode(call.dtype, &input[at..at + size])).collect();
        assert_reduced(call.dtype, op, &operands, decode(call.dtype, element), words);
    }
}

/// Carries one call out and compares every byte that it may have touched.
fn compare(world: &World, mpi: &Mpi<'_>, call: &Call, case: u64) {
    let (me, ranks, size) = (world.rank(), world.size(), call.dtype.size());
    let words = format!("case {case} on rank {me} of {ranks}: {call:?}");
    let inputs: Vec<_> = (0..ranks).map(|rank| input(call, case, rank, ranks)).collect();
    let mut buffers = Buffers::new((call.layout.size() * size + GUARD) as u64, 0).unwrap();
    buffers.recv_bytes().fill(POISON);
    let own = &inputs[me];
    if call.in_place {
        let at = me * call.layout.send_in_place * size;
        buffers.recv_bytes()[at..at + own.len()].copy_from_slice(own);
    } else {
        buffers.send_bytes()[..own.len()].copy_from_slice(own);
    }

    mpi.prepare(call, &mut buffers).unwrap_or_else(|error| panic!("{words}: {error:?}"))()
        .unwrap_or_else(|error| panic!("{words}: {error}"));

    if !call.in_place {
        assert!(buffers.send_bytes()[..own.len()] == own[..], "{words}: the input was changed");
    }
    let (message, guard) = buffers.recv_bytes().split_at(call.layout.size() * size);
    assert!(guard.iter().all(|byte| *byte == POISON), "{words}: wrote beyond its buffer");
    let at = mpi.output_at(call) * size;
    let got = &message[at..at + call.layout.recv * size];
    let gets = call.collective.name != "reduce" || me == call.root;
    match call.redop {
        Some(_) if gets => {
            let from =
                if call.collective.name == "reducescatter" { me * call.layout.recv } else { 0 };
            assert_all_reduced(call, from, &inputs, got, &words);
        }
        None if let Some(expected) = moved(call, me, &inputs) => {
            assert!(got[..expected.len()] == expected[..], "{words}: wrong data");
        }
        _ if !call.in_place => {
            assert!(message.iter().all(|byte| *byte == POISON), "{words}: it receives nothing");
        }
        _ => {}
    }
}

/// Whether this MPI itself crashes: MPICH 4.0.2 does in an MPI_Reduce in place of more than 2 KiB to
/// a root other than 0.
fn crashes(call: &Call) -> bool {
    let in_place_elsewhere = call.collective.name == "reduce" && call.in_place && call.root > 0;
    in_place_elsewhere && own_family() == Family::Mpich
}

/// Every call of a collective that differs in what it does.
fn calls(collective: &'static Collective, ranks: usize) -> Vec<Call> {
    let redops: Vec<Option<RedOp>> =
        if collective.reduces { RedOp::ALL.map(Some).into() } else { vec![None] };
    let placements: &[bool] =
        if collective.in_place == InPlace::Absent { &[false] } else { &[false, true] };
    let mut exchanges = vec![Exchange::default()];
    if collective.name == "pingpong" {
        exchanges.extend([false, true].map(|two_way| Exchange { window: Some(3), two_way }));
    }
    let counts = if crawls(ranks) { &COUNTS[2..] } else { &COUNTS[..] };
    let mut calls = Vec::new();
    for dtype in DType::ALL {
        for &redop in &redops {
            for &count in counts {
                let roots =
                    if collective.rooted && count < 100 { 0..ranks } else { ranks - 1..ranks };
                for root in roots {
                    for &in_place in placements {
                        for &exchange in &exchanges {
                            let layout = (collective.layout)(count, dtype.size(), ranks);
                            calls.push(Call {
                                collective,
                                dtype,
                                redop,
                                root,
                                layout,
                                in_place,
                                exchange,
                            });
                        }
                    }
                }
            }
        }
    }
    calls
}

fn every_collective() {
    let world = World::start().expect("MPI starts");
    let mpi = Mpi::new(&world).expect("a communicator");
    let all = collective::ALL.into_iter().filter(|c| (c.refuses)(world.size()).is_none());
    let calls = all
        .flat_map(|collective| calls(collective, world.size()))
        .filter(|call| !known_wrong(call.dtype, call.redop, world.size()) && !crashes(call));
    for (case, call) in (0..).zip(calls) {
        compare(&world, &mpi, &call, case);
    }
}

macro_rules! on {
    ($($name:ident: $ranks:expr),*) => {$(
        #[test]
        fn $name() {
            on_ranks($ranks, concat!("reference::", stringify!($name)), every_collective);
        }
    )*};
}

on!(one_rank: 1, two_ranks: 2, three_ranks: 3, four_ranks: 4, seven_ranks: 7, eight_ranks: 8);
