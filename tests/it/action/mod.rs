//! The action as its runner sees it: inputs, event and files go in; exit code, outputs, summary and commands come out.

mod events;
mod examples;
mod hostile;
mod measured;
mod published;
mod runner;
