package writer

// BlindAppend reports whether the transaction only adds and has read nothing.
func (s *TxnSpec) BlindAppend() bool { return false }
