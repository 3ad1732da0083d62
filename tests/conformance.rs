//! One suite for both forms of tmux: the simulated one, on which the simulated fleet lives, and the installed one, over
//! control mode and by a process for each question. Where they differ, the simulation is wrong.

#![expect(clippy::unwrap_used, reason = "a failure is a panic")]

mod support {
    pub(crate) mod sim;
    pub(crate) mod tmux;
    pub(crate) mod world;
}

#[path = "conform/input.rs"]
mod input;
#[path = "conform/marks.rs"]
mod marks;
#[path = "conform/refusals.rs"]
mod refusals;
#[path = "conform/screens.rs"]
mod screens;
#[path = "conform/server.rs"]
mod server;
#[path = "conform/windows.rs"]
mod windows;

use std::panic::{AssertUnwindSafe, catch_unwind};

use support::world::World;
use support::world::real::RealWorld;
use support::world::simulated::SimWorld;

/// Checks that the simulation does not pass, each with the reason why it should not be made to.
const DIFFERENT: [(&str, &str); 1] = [(
    "rows_that_scrolled_away_are_counted",
    "nothing but the change key reads the scrollback, and the simulated programs change their screen or cursor as well",
)];

/// Every check, against each form of tmux.
macro_rules! conform {
    ($($file:ident: $($check:ident),+;)+) => {
        mod simulated {
            $($(
                #[test]
                fn $check() {
                    super::run_simulated(stringify!($check), crate::$file::$check);
                }
            )+)+
        }
        mod by_control {
            $($(
                #[test]
                fn $check() {
                    super::run::<super::RealWorld<true>>(crate::$file::$check);
                }
            )+)+
        }
        mod by_process {
            $($(
                #[test]
                fn $check() {
                    super::run::<super::RealWorld<false>>(crate::$file::$check);
                }
            )+)+
        }
        const CHECKS: &[&str] = &[$($(stringify!($check)),+),+];
    };
}

conform! {
    server:
        without_a_server_every_question_says_so,
        a_server_that_ends_is_noticed_and_its_successor_is_another,
        the_last_window_takes_the_server_with_it;
    windows:
        a_missing_pane_is_gone_and_never_another,
        names_are_labels_that_may_repeat_and_change,
        a_name_finds_its_own_windows_only,
        sessions_are_listed_by_name_and_windows_by_number,
        when_the_current_window_closes_the_one_before_is_current,
        a_linked_window_is_listed_once;
    marks:
        a_bell_stands_until_it_is_cleared,
        a_bell_that_was_not_named_is_never_cleared,
        the_bells_of_a_linked_window_are_those_of_its_sessions,
        whoever_looks_has_heard_the_bell,
        stamps_are_whole_seconds,
        what_is_no_output_leaves_no_stamp,
        a_window_that_becomes_current_is_stamped;
    refusals:
        an_ended_program_leaves_its_pane_and_how_it_ended,
        another_program_in_the_pane_is_another_process,
        in_copy_mode_a_pane_is_read_and_not_written,
        a_synchronised_window_is_never_written_to,
        another_server_is_refused,
        the_first_reason_is_told;
    screens:
        the_screen_is_compared_literally,
        a_text_across_two_rows_is_not_found,
        rows_are_those_of_the_visible_screen,
        blanks_at_the_end_of_a_row_are_cut,
        rows_break_by_cells,
        colours_change_no_text,
        rows_that_scrolled_away_are_counted,
        a_question_may_follow_from_an_answer;
    input:
        a_paste_is_framed_where_the_program_asked,
        a_paste_without_frames_has_carriage_returns,
        keys_arrive_as_their_bytes,
        text_that_may_not_be_sent_is_not_sent,
        a_terminal_echoes_a_paste_and_enter_ends_the_line;
}

/// Runs a check on a machine with a server.
fn run<W: World>(check: impl AsyncFnOnce(&W)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(W::VIRTUAL).build().unwrap();
    runtime.block_on(async {
        let world = W::new();
        world.start_server().await;
        check(&world).await;
    });
}

/// Runs a check on the simulated machine; one that is excused has to fail.
fn run_simulated(name: &str, check: impl AsyncFnOnce(&SimWorld)) {
    match DIFFERENT.iter().find(|(excused, _)| *excused == name) {
        None => run(check),
        Some((_, reason)) => {
            let passed = catch_unwind(AssertUnwindSafe(|| run(check))).is_ok();
            assert!(!passed, "the simulation does this now, so it needs no excuse: {reason}");
        }
    }
}

#[test]
fn every_excuse_is_for_a_check() {
    for (name, reason) in DIFFERENT {
        assert!(CHECKS.contains(&name) && !reason.is_empty(), "{name}");
    }
}
