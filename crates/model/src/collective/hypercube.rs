use super::*;

/// An allgather by exchanges along each dimension of a hypercube.
pub(super) const HYPERCUBE: Collective = Collective {
    name: "hypercube",
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
    algbw_elements: |layout, ranks| layout.param * (ranks - 1),
    busbw_factor: one,
    refuses: |ranks| {
        (!ranks.is_power_of_two()).then(|| {
            let below = 1 << ranks.ilog2();
            format!("hypercube needs 2, 4, 8, … ranks, and this world has {ranks}: use mpirun -n {below}")
        })
    },
    idle: nobody,
    expected: everyone_from_everyone,
};
