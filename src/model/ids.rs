//! Numbers of the threads and traces of a model.

crate::base::names::handle! {
    /// A thread of the model.
    ThreadInfoId,
    /// A trace given on the command line.
    TraceId,
}
