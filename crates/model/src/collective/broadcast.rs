use super::*;

/// Every rank ends with the root's input.
pub(super) const BROADCAST: Collective = Collective {
    name: "broadcast",
    reduces: false,
    rooted: true,
    synchronises: false,
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
    busbw_factor: one,
    refuses: any_ranks,
    idle: nobody,
    expected: |_, _, root, layout| {
        vec![Segment { at: 0, len: layout.recv, source: Source::Rank { rank: root, from: 0 } }]
    },
};
