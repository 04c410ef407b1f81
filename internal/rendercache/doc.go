// Package rendercache keeps chunks of files that were rendered, so that each is
// rendered once, however many versions, mounts and processes read it.
//
// A chunk is named by a hash of all that it is made of. It lies in a file of the
// cache's directory, sparse where nothing was rendered, behind a header with a
// checksum. Whoever renders one writes under a temporary name and renames;
// whoever reads one keeps it open, so that deleting it harms nobody. When they
// take more than the bound, those go whose files were touched longest ago; a
// file system keeps some space free.
//
// It is only a cache: a file that is damaged, cut short or of another program when
// it is opened is passed over and rendered anew. One that is open is believed: who
// writes into it then writes into what is read. Without a
// directory, or where it cannot be used, chunks lie in temporary files without
// a name, bounded the same; and on a full disk small ones in memory.
//
// Chunks are rendered on goroutines of the cache, as many at a time as there are
// processors, and one that several ask for once. It is given up when all have
// given up who asked.
//
// The package knows nothing of Parquet. Locks: Cache.mu guards fields and is
// never held during I/O, nor together with disk.mu, which guards the count of
// what the directory holds.
package rendercache
