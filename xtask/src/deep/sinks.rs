//! Where a secret could get to, and the test that searches it there.

/// Each sink with its test.
pub(super) const SINKS: &[(&str, &str)] = &[
    ("logs of every crate at TRACE", "a_trace_of_everything_holds_no_secret"),
    ("labels of metrics", "a_trace_of_everything_holds_no_secret"),
    ("fields of spans", "no_secret_and_no_id_is_in_a_span"),
    ("Debug and Display", "no_piece_of_any_secret_is_shown_anywhere"),
    ("chains of errors", "no_piece_of_any_secret_is_shown_anywhere"),
    ("panics", "no_piece_of_any_secret_is_shown_anywhere"),
    ("what a client says of itself", "a_client_describes_what_it_was_set_to_and_no_secret"),
    ("journals of orders and limits", "the_journals_hold_no_piece_of_a_secret"),
    ("the token's file, but for the token", "the_record_holds_the_token_and_no_other_secret"),
    ("stdout and --json of the command", "no_piece_of_a_secret_is_printed_logged_or_handed_to_a_child"),
    ("arguments and environment of children", "no_piece_of_a_secret_is_printed_logged_or_handed_to_a_child"),
    ("the log of an interrupted demo", "an_interruption_drains_what_is_in_doubt_and_no_secret_is_logged"),
    ("results of replay", "results_go_to_a_file_and_nothing_secret_goes_to_the_log"),
    (
        "what the service says, in results, output and journals",
        "x01_a_vile_answer_reaches_no_output_file_or_journal",
    ),
    ("errors of the command line", "x01_what_is_wrong_with_the_command_line_quotes_no_password"),
    ("the demo's report", "the_report_needs_nothing_else_and_tells_no_secret"),
    ("the sandbox's admin API", "the_admin_api_shows_no_secret_in_its_state"),
    ("the sandbox's ground truth", "the_ground_truth_holds_no_secret"),
];
