use super::*;

/// Every rank ends with all inputs, in rank order.
pub(super) const ALLGATHER: Collective = Collective {
    name: "allgather",
    reduces: false,
    rooted: false,
    synchronises: true,
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
    expected: everyone_from_everyone,
};
