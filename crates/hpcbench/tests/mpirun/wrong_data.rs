//! A wrong element is found, counted, named and made the exit code.

use crate::run::{hpcbench, read_samples, run_of};

fn one_wrong_element(arguments: &str, rank: u32, offset: u64) {
    let finished = hpcbench(3, &format!("{arguments} --inject-wrong {rank}:{offset}")).finish();
    let words = finished.words();
    assert_eq!(finished.code(), 3, "{words}");
    let run = run_of(&finished);
    assert!(run.complete && run.rows.len() == 2, "{words}");
    for row in &run.rows {
        let wrong = row.first_wrong.as_ref().expect(&words);
        assert_eq!((row.wrong, wrong.rank, wrong.offset), (Some(1), rank, offset), "{words}");
        assert_eq!(wrong.host, run.world.ranks[rank as usize].host);
        assert_ne!(wrong.got, wrong.expected);
        let line = format!(
            "first at element {offset} of rank {rank} on {}: got {}, expected {}",
            wrong.host, wrong.got, wrong.expected
        );
        assert!(finished.stdout.contains(&line), "{line}\n{words}");
    }
    assert!(finished.stdout.contains("# Out of bounds values : 2 FAILED"), "{words}");
    read_samples(&finished.dir().join("run"));
}

#[test]
fn of_a_reduction() {
    one_wrong_element("allreduce -b 400 -e 400 -n 2", 1, 57);
}

#[test]
fn of_moved_data_in_a_later_segment() {
    one_wrong_element("allgather -d half -b 600 -e 600 -n 2", 2, 250);
}

#[test]
fn the_first_check_that_fails_is_the_last() {
    one_wrong_element("allreduce -d int32 -o max -b 400 -e 400 -n 2 -c 4", 0, 99);
}
