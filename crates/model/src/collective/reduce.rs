use super::*;

/// The root ends with the reduction of all inputs.
pub(super) const REDUCE: Collective = Collective {
    name: "reduce",
    reduces: true,
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
    expected: |rank, _, root, layout| {
        let all = Segment { at: 0, len: layout.recv, source: Source::Reduced { from: 0 } };
        if rank == root { vec![all] } else { Vec::new() }
    },
};
