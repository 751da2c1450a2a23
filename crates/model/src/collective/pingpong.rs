use super::*;

/// Pairs of ranks send a message to and fro.
pub(super) const PINGPONG: Collective = Collective {
    name: "pingpong",
    reduces: false,
    rooted: false,
    synchronises: false,
    paired: true,
    in_place: InPlace::Absent,
    layout: |count, _, _| Layout {
        send: count,
        recv: count,
        param: count,
        send_in_place: 0,
        recv_in_place: 0,
    },
    algbw_elements: size_elements,
    busbw_factor: one,
    refuses: |ranks| {
        (ranks < 2)
            .then(|| "pingpong needs a pair of ranks: use mpirun -n 2 hpcbench pingpong".to_owned())
    },
    idle: |rank, ranks| peer(rank, ranks).is_none(),
    expected: |rank, ranks, _, layout| match peer(rank, ranks) {
        Some(rank) => {
            vec![Segment { at: 0, len: layout.recv, source: Source::Rank { rank, from: 0 } }]
        }
        None => Vec::new(),
    },
};

/// The rank that `rank` plays with: r and r + n/2, so that with ranks placed host by host the
/// messages cross the network. With an odd number of ranks the last one stays out.
pub fn peer(rank: usize, ranks: usize) -> Option<usize> {
    let half = ranks / 2;
    match rank {
        r if r < half => Some(r + half),
        r if r < 2 * half => Some(r - half),
        _ => None,
    }
}
