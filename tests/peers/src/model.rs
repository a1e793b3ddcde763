//! A scripted service that speaks chat completions.
