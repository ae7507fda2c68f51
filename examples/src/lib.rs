//! Small complete programs: see the files beside this folder.
