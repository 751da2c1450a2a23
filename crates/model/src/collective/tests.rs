use super::*;
use proptest::prelude::*;

fn layout(name: &str, count: usize, element_bytes: usize, ranks: usize) -> Layout {
    (by_name(name).unwrap().layout)(count, element_bytes, ranks)
}

#[test]
fn factors_are_nccl_tests() {
    for (name, factor) in [
        ("allreduce", 1.75),
        ("allgather", 0.875),
        ("reducescatter", 0.875),
        ("alltoall", 0.875),
        ("gather", 0.875),
        ("scatter", 0.875),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("sendrecv", 1.0),
        ("hypercube", 1.0),
        ("pingpong", 1.0),
    ] {
        assert_eq!((by_name(name).unwrap().busbw_factor)(8), factor, "{name}");
    }
}

#[test]
fn shares_are_rounded_down_to_sixteen_bytes() {
    assert_eq!(layout("allgather", 1000, 4, 8).param, 124);
    assert_eq!(layout("allgather", 1000, 1, 8).param, 112);
    assert_eq!(layout("alltoall", 7, 8, 8).param, 0);
    assert_eq!(layout("hypercube", 1 << 20, 4, 4).param, 1 << 18);
}

#[test]
fn hypercube_counts_what_arrives_from_others() {
    let c = by_name("hypercube").unwrap();
    assert_eq!((c.algbw_elements)(&layout("hypercube", 1024, 4, 8), 8), 128 * 7);
    assert!((c.refuses)(8).is_none());
    assert!((c.refuses)(6).unwrap().contains("mpirun -n 4"));
}

#[test]
fn pingpong_pairs_halves_and_leaves_an_odd_rank_out() {
    let pairs: Vec<_> = (0..5).map(|r| pingpong_peer(r, 5)).collect();
    assert_eq!(pairs, [Some(2), Some(3), Some(0), Some(1), None]);
}

proptest! {
    #[test]
    fn expected_segments_cover_the_receive_buffer_once(
        which in 0..ALL.len(), count in 0_usize..5000, width in prop::sample::select(vec![1_usize, 2, 4, 8]),
        ranks in 1_usize..17, pick in 0_usize..1000,
    ) {
        let c = ALL[which];
        let layout = (c.layout)(count, width, ranks);
        let root = pick % ranks;
        for rank in 0..ranks {
            let mut segments = (c.expected)(rank, ranks, root, &layout);
            segments.sort_by_key(|s| s.at);
            let mut at = 0;
            for s in &segments {
                prop_assert_eq!(s.at, at);
                at += s.len;
                let (from, limit) = match s.source {
                    Source::Rank { rank, from } => { prop_assert!(rank < ranks); (from, layout.send) }
                    Source::Reduced { from } => (from, layout.send),
                };
                prop_assert!(from + s.len <= limit);
            }
            prop_assert!(segments.is_empty() || at == layout.recv);
        }
        let someone = (0..ranks).any(|rank| !(c.expected)(rank, ranks, root, &layout).is_empty());
        prop_assert!(someone || (c.refuses)(ranks).is_some());
    }

    #[test]
    fn in_place_halves_fit_into_one_buffer(
        which in 0..ALL.len(), count in 0_usize..5000, width in prop::sample::select(vec![1_usize, 2, 4, 8]), ranks in 1_usize..17,
    ) {
        let l = (ALL[which].layout)(count, width, ranks);
        prop_assert!((ranks - 1) * l.send_in_place + l.send <= l.size());
        prop_assert!((ranks - 1) * l.recv_in_place + l.recv <= l.size());
    }
}
