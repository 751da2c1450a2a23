use super::*;

/// Rank r ends with the r-th part of the reduction.
pub(super) const REDUCESCATTER: Collective = Collective {
    name: "reducescatter",
    reduces: true,
    rooted: false,
    synchronises: true,
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
    expected: |rank, _, _, layout| {
        vec![Segment {
            at: 0,
            len: layout.recv,
            source: Source::Reduced { from: rank * layout.param },
        }]
    },
};
