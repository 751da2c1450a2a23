use super::*;

/// Rank r ends with the r-th part of every rank's input, in rank order.
pub(super) const ALLTOALL: Collective = Collective {
    name: "alltoall",
    reduces: false,
    rooted: false,
    synchronises: true,
    paired: false,
    in_place: InPlace::Unchecked,
    layout: |count, element_bytes, ranks| {
        let param = share(count, element_bytes, ranks);
        Layout {
            send: param * ranks,
            recv: param * ranks,
            param,
            send_in_place: 0,
            recv_in_place: 0,
        }
    },
    algbw_elements: size_elements,
    busbw_factor: others_share,
    refuses: any_ranks,
    idle: nobody,
    expected: |me, ranks, _, layout| {
        let len = layout.param;
        let part =
            |rank| Segment { at: rank * len, len, source: Source::Rank { rank, from: me * len } };
        (0..ranks).map(part).collect()
    },
};
