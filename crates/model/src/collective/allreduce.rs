use super::*;

/// Every rank ends with the reduction of all inputs.
pub(super) const ALLREDUCE: Collective = Collective {
    name: "allreduce",
    reduces: true,
    rooted: false,
    synchronises: true,
    paired: false,
    in_place: InPlace::Checked,
    layout: |count, _, _| Layout {
        send: count,
        recv: count,
        param: count,
        send_in_place: 0,
        recv_in_place: 0,
    },
    algbw_elements: size_elements,
    // Each element crosses the bus once on its way to be reduced and once on its way back.
    busbw_factor: |ranks| 2.0 * others_share(ranks),
    refuses: any_ranks,
    idle: nobody,
    expected: |_, _, _, layout| {
        vec![Segment { at: 0, len: layout.recv, source: Source::Reduced { from: 0 } }]
    },
};
