use super::*;

/// The root ends with all inputs, in rank order.
pub(super) const GATHER: Collective = Collective {
    name: "gather",
    reduces: false,
    rooted: true,
    synchronises: false,
    paired: false,
    in_place: InPlace::Checked,
    layout: |count, element_bytes, ranks| {
        let base = share(count, element_bytes, ranks);
        Layout {
            send: base,
            recv: base * ranks,
            param: base,
            send_in_place: base,
            recv_in_place: 0,
        }
    },
    algbw_elements: size_elements,
    busbw_factor: others_share,
    refuses: any_ranks,
    idle: nobody,
    expected: |rank, ranks, root, layout| {
        if rank == root { everyone_from_everyone(rank, ranks, root, layout) } else { Vec::new() }
    },
};
