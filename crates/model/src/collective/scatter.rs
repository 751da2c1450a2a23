use super::*;

/// Rank r ends with the r-th part of the root's input.
pub(super) const SCATTER: Collective = Collective {
    name: "scatter",
    reduces: false,
    rooted: true,
    synchronises: false,
    paired: false,
    in_place: InPlace::Checked,
    layout: |count, element_bytes, ranks| {
        let base = share(count, element_bytes, ranks);
        Layout {
            send: base * ranks,
            recv: base,
            param: base,
            send_in_place: 0,
            recv_in_place: base,
        }
    },
    algbw_elements: size_elements,
    busbw_factor: others_share,
    refuses: any_ranks,
    idle: nobody,
    expected: |rank, _, root, layout| {
        let from = rank * layout.param;
        vec![Segment { at: 0, len: layout.recv, source: Source::Rank { rank: root, from } }]
    },
};
