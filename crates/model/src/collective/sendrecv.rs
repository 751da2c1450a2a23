use super::*;

/// Rank r sends to r+1 and receives from r−1, around the ring.
pub(super) const SENDRECV: Collective = Collective {
    name: "sendrecv",
    reduces: false,
    rooted: false,
    synchronises: false,
    paired: false,
    in_place: InPlace::Unchecked,
    layout: |count, _, _| Layout {
        send: count,
        recv: count,
        param: count,
        send_in_place: 0,
        recv_in_place: 0,
    },
    algbw_elements: size_elements,
    busbw_factor: one,
    refuses: any_ranks,
    idle: nobody,
    expected: |rank, ranks, _, layout| {
        let before = (rank + ranks - 1) % ranks;
        vec![Segment { at: 0, len: layout.recv, source: Source::Rank { rank: before, from: 0 } }]
    },
};
