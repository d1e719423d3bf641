//! Small statistics, checked against published values (filled by the comparison).
