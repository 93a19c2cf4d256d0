<?php
/**
 * Operations of the agent's workspace tools that read: lines, bytes, directories, whole files.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Reads files below the mounts. Opens regular files only, because reading a FIFO could block forever.
 */
final class Reading {
	/** Size limit of the lines that one request returns, in bytes. */
	private const PAGE_BYTES = 28672;
	/** Maximum length of a line that is returned complete, in bytes. */
	private const LINE_BYTES = 2000;
	/** Maximum size of a file whose lines are counted, in bytes. */
	private const COUNT_BYTES = 16777216;
	/** Size limit of one fetched file, and of all fetched files together, in bytes. */
	private const FETCH_BYTES = 4194304;
	/** Maximum number of directory entries that one listing visits. */
	private const VISITS = 200000;

	public function __construct( private readonly Places $places ) {}

	/**
	 * @param array<string,mixed> $request Request {path, start_line, lines}.
	 * @return array<string,mixed>
	 */
	public function lines( array $request ): array {
		$file   = $this->file( $request['path'] ?? null );
		$size   = (int) filesize( $file );
		$answer = array(
			'path' => $this->places->name( $file ),
			'size' => $size,
		);
		if ( $this->is_binary( $file ) ) {
			return $answer + array(
				'binary' => true,
				'sha256' => hash_file( 'sha256', $file ),
			);
		}
		$first  = max( 1, (int) ( $request['start_line'] ?? 1 ) );
		$most   = max( 1, (int) ( $request['lines'] ?? 400 ) );
		$handle = $this->open( $file );
		$lines  = array();
		$cut    = array();
		$number = 0;
		$bytes  = 0;
		$next   = null;
		while ( true ) {
			$line = fgets( $handle, self::PAGE_BYTES );
			if ( false === $line ) {
				break;
			}
			++$number;
			$ended = str_ends_with( $line, "\n" );
			if ( ! $ended ) {
				$rest = $this->pass_line( $handle );
			}
			if ( $number < $first ) {
				continue;
			}
			$line = rtrim( $line, "\n" );
			if ( strlen( $line ) > self::LINE_BYTES || ( ! $ended && $rest > 0 ) ) {
				$cut[] = $number;
				$line  = mb_strcut( $line, 0, self::LINE_BYTES );
			}
			$bytes += strlen( $line ) + 1;
			if ( count( $lines ) >= $most || ( $bytes > self::PAGE_BYTES && array() !== $lines ) ) {
				$next = $number;
				break;
			}
			$lines[] = $line;
		}
		fclose( $handle );
		return $answer + array(
			'start' => $first,
			'lines' => $lines,
			'cut'   => $cut,
			'next'  => $next,
			'total' => null === $next ? $number : $this->count( $file, $size ),
		);
	}

	/**
	 * @param array<string,mixed> $request Request {path, offset, length}.
	 * @return array<string,mixed>
	 */
	public function bytes( array $request ): array {
		$file   = $this->file( $request['path'] ?? null );
		$size   = (int) filesize( $file );
		$offset = max( 0, (int) ( $request['offset'] ?? 0 ) );
		$length = max( 1, min( 24576, (int) ( $request['length'] ?? 12288 ) ) );
		$bytes  = $offset >= $size ? '' : file_get_contents( $file, false, null, $offset, $length );
		if ( false === $bytes ) {
			throw new Refusal( 'io', $this->places->show( $request['path'] ) . ' cannot be read' );
		}
		return array(
			'path'   => $this->places->name( $file ),
			'size'   => $size,
			'offset' => $offset,
			'base64' => base64_encode( $bytes ),
			'next'   => $offset + strlen( $bytes ) < $size && '' !== $bytes ? $offset + strlen( $bytes ) : null,
			'sha256' => $size <= self::COUNT_BYTES ? hash_file( 'sha256', $file ) : null,
		);
	}

	/**
	 * @param array<string,mixed> $request Request {path, depth, limit, offset}.
	 * @return array<string,mixed>
	 */
	public function list( array $request ): array {
		$top    = $this->places->existing( $request['path'] ?? '.' );
		$limit  = max( 1, (int) ( $request['limit'] ?? 300 ) );
		$offset = max( 0, (int) ( $request['offset'] ?? 0 ) );
		if ( ! is_dir( $top ) ) {
			throw new Refusal( 'kind', $this->places->show( $request['path'] ) . ' is not a directory; read it with workspace.read' );
		}
		$rows  = array();
		$seen  = 0;
		$bytes = 0;
		$next  = null;
		foreach ( $this->walk( $top, max( 1, (int) ( $request['depth'] ?? 2 ) ) ) as $below => $kind ) {
			++$seen;
			if ( $seen <= $offset ) {
				continue;
			}
			if ( count( $rows ) >= $limit || $bytes > self::PAGE_BYTES ) {
				$next = $seen - 1;
				break;
			}
			$bytes += strlen( (string) $below ) + 20;
			$row = array(
				'path' => $below,
				'kind' => $kind,
			);
			if ( 'file' === $kind ) {
				$row['size'] = (int) @filesize( $top . '/' . $below );
			} elseif ( 'link' === $kind ) {
				$row['to'] = (string) @readlink( $top . '/' . $below );
			}
			$rows[] = $row;
		}
		return array(
			'path'    => $this->places->name( $top ),
			'entries' => $rows,
			'offset'  => $offset,
			'next'    => $next,
		);
	}

	/**
	 * Returns whole files, which the caller edits and stores again.
	 *
	 * @param array<string,mixed> $request Request {paths}.
	 * @param string|null         $bytes   Set to the concatenated bytes of the files.
	 * @return array<string,mixed>
	 */
	public function fetch( array $request, ?string &$bytes ): array {
		$rows  = array();
		$bytes = '';
		foreach ( (array) ( $request['paths'] ?? array() ) as $path ) {
			$place = $this->places->writable( $path );
			if ( ! file_exists( $place ) ) {
				$rows[] = array( 'exists' => false );
				continue;
			}
			$file = $this->file( $path );
			$size = (int) filesize( $file );
			if ( strlen( $bytes ) + $size > self::FETCH_BYTES ) {
				throw new Refusal( 'limit', $this->places->show( $path ) . ' is too large to be edited (files of one change may have 4 MiB together); change it with terminal.run' );
			}
			$content = file_get_contents( $file, false, null, 0, self::FETCH_BYTES );
			if ( false === $content ) {
				throw new Refusal( 'io', $this->places->show( $path ) . ' cannot be read' );
			}
			$bytes .= $content;
			$rows[] = array(
				'exists' => true,
				'length' => strlen( $content ),
				'sha256' => hash( 'sha256', $content ),
			);
		}
		return array( 'files' => $rows );
	}

	/**
	 * Lists everything below a directory, sorted, without `.git` and without following symlinks.
	 *
	 * @param string $top   Directory to list.
	 * @param int    $depth Maximum depth.
	 * @return \Generator<string,string> Type `file`, `dir`, `link` or `other` by path below `$top`.
	 */
	public function walk( string $top, int $depth ): \Generator {
		$left = self::VISITS;
		yield from $this->level( $top, '', $depth, $left );
	}

	/**
	 * Checks whether a file is binary: its first 8 KiB contain a NUL.
	 *
	 * @param string $file Path on the file system.
	 * @return bool Whether the file is binary.
	 */
	public function is_binary( string $file ): bool {
		$head = file_get_contents( $file, false, null, 0, 8192 );
		return is_string( $head ) && str_contains( $head, "\0" );
	}

	/**
	 * Resolves a path to a regular file that may be opened.
	 *
	 * @param mixed $path Path as the caller gave it.
	 * @return string Absolute path on the file system.
	 */
	private function file( mixed $path ): string {
		$file = $this->places->existing( $path );
		if ( is_dir( $file ) ) {
			throw new Refusal( 'kind', $this->places->show( $path ) . ' is a directory; look with workspace.list' );
		}
		if ( 'file' !== filetype( $file ) ) {
			throw new Refusal( 'kind', $this->places->show( $path ) . ' is not a regular file but a ' . filetype( $file ) );
		}
		if ( ! is_readable( $file ) ) {
			throw new Refusal( 'io', $this->places->show( $path ) . ' cannot be read: permission denied' );
		}
		return $file;
	}

	/**
	 * @param string $file Path on the file system.
	 * @return resource
	 */
	private function open( string $file ) {
		$handle = fopen( $file, 'rb' );
		if ( false === $handle ) {
			throw new Refusal( 'io', $this->places->show( $this->places->name( $file ) ) . ' cannot be opened' );
		}
		return $handle;
	}

	/**
	 * Skips the rest of a line that is too long to return.
	 *
	 * @param resource $handle Open file.
	 * @return int Number of skipped bytes.
	 */
	private function pass_line( $handle ): int {
		$passed = 0;
		do {
			$more    = fgets( $handle, 65536 );
			$passed += strlen( (string) $more );
		} while ( is_string( $more ) && ! str_ends_with( $more, "\n" ) );
		return $passed;
	}

	private function count( string $file, int $size ): ?int {
		if ( $size > self::COUNT_BYTES ) {
			return null;
		}
		$handle = $this->open( $file );
		$lines  = 0;
		$last   = "\n";
		while ( ! feof( $handle ) ) {
			$piece  = (string) fread( $handle, 1048576 );
			$lines += substr_count( $piece, "\n" );
			$last   = '' === $piece ? $last : $piece[-1];
		}
		fclose( $handle );
		return $lines + ( "\n" === $last ? 0 : 1 );
	}

	/**
	 * @param string $directory Path on the file system.
	 * @param string $below     Path below the top directory, with a trailing slash.
	 * @param int    $depth     Remaining depth.
	 * @param int    $left      Remaining number of entries to visit.
	 * @return \Generator<string,string>
	 */
	private function level( string $directory, string $below, int $depth, int &$left ): \Generator {
		$names = @scandir( $directory, SCANDIR_SORT_NONE );
		if ( false === $names ) {
			return;
		}
		sort( $names, SORT_STRING );
		foreach ( $names as $name ) {
			if ( '.' === $name || '..' === $name || Places::is_git( $name ) ) {
				continue;
			}
			if ( --$left < 0 ) {
				throw new Refusal( 'limit', 'there are more than ' . self::VISITS . ' entries; name a directory further down' );
			}
			$kind = match ( @filetype( $directory . '/' . $name ) ) {
				'file'  => 'file',
				'dir'   => 'dir',
				'link'  => 'link',
				default => 'other',
			};
			// A generator keeps a numeric name a string; an array would turn that key into an integer.
			yield $below . $name => $kind;
			if ( 'dir' === $kind && $depth > 1 ) {
				yield from $this->level( $directory . '/' . $name, $below . $name . '/', $depth - 1, $left );
			}
		}
	}
}
