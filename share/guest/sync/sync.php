<?php
/**
 * Copies files into and out of the mounts of a held sandbox, one at a time.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Answers the requests of a file sync.
 */
final class Sync {
	/** Maximum depth of directories that are listed. */
	private const DEPTH = 64;

	public function __construct(
		private readonly Places $places,
		private readonly Writing $writing,
	) {}

	/**
	 * @param array<string,mixed> $question Request of the sync.
	 * @param resource            $input    Stream with the bytes of the request, if any.
	 * @return array{array<string,mixed>,string} Reply, and the bytes that follow it.
	 */
	public function answer( array $question, $input ): array {
		// This process runs for a long time, so PHP's cached file status may be stale.
		clearstatcache( true );
		$path  = $question['path'] ?? null;
		$bytes = '';
		// The bytes are read even for a failed request, because the next request follows them.
		$length  = max( 0, (int) ( $question['length'] ?? 0 ) );
		$content = 0 === $length ? '' : (string) stream_get_contents( $input, $length );
		try {
			if ( strlen( $content ) !== $length ) {
				throw new Refusal( 'request', 'the bytes of ' . $this->places->show( $path ) . ' are missing' );
			}
			$answer = match ( (string) ( $question['op'] ?? '' ) ) {
				'put'    => $this->put( $question, $content ),
				'remove' => $this->remove( $question ),
				'read'   => $this->read( $question, $bytes ),
				'tree'   => $this->tree( $question ),
				default  => throw new Refusal( 'request', 'there is no such operation' ),
			};
			return array( array( 'ok' => true ) + $answer, $bytes );
		} catch ( Refusal $refusal ) {
			$answer = array(
				'ok'      => false,
				'code'    => $refusal->reason,
				'message' => $refusal->getMessage(),
			);
			if ( 'changed' === $refusal->reason ) {
				$answer['found'] = $this->digest( $path );
			}
			return array( $answer, '' );
		}
	}

	/**
	 * @param array<string,mixed> $question Request {path, length, sha256, mode}.
	 * @param string              $content  New content of the file.
	 * @return array<string,mixed>
	 */
	private function put( array $question, string $content ): array {
		$memory = fopen( 'php://memory', 'w+b' );
		fwrite( $memory, $content );
		rewind( $memory );
		$done = $this->store( array( 'action' => 'write' ) + $question, $memory );
		fclose( $memory );
		return array( 'existed' => $done['existed'] );
	}

	/**
	 * @param array<string,mixed> $question Request {path, sha256}.
	 * @return array<string,mixed>
	 */
	private function remove( array $question ): array {
		try {
			$this->store( array( 'action' => 'delete' ) + $question, STDIN );
			return array( 'existed' => true );
		} catch ( Refusal $refusal ) {
			if ( 'missing' !== $refusal->reason ) {
				throw $refusal;
			}
			return array( 'existed' => false );
		}
	}

	/**
	 * @param array<string,mixed> $change One change, see Writing::store().
	 * @param resource            $input  Stream with the bytes of the change.
	 * @return array<string,mixed>
	 */
	private function store( array $change, $input ): array {
		return $this->writing->store( array( 'changes' => array( $change ) ), $input )['files'][0];
	}

	/**
	 * @param array<string,mixed> $question Request {path, most}.
	 * @param string              $bytes    Set to the content.
	 * @return array<string,mixed>
	 */
	private function read( array $question, string &$bytes ): array {
		$place = $this->places->entry( $question['path'] ?? null );
		$most  = (int) ( $question['most'] ?? 0 );
		if ( is_link( $place ) || ! is_file( $place ) ) {
			throw new Refusal( 'kind', $this->places->show( $question['path'] ) . ' is not a regular file' );
		}
		$content = @file_get_contents( $place, false, null, 0, $most + 1 );
		if ( false === $content ) {
			throw new Refusal( 'io', $this->places->show( $question['path'] ) . ' cannot be read: permission denied' );
		}
		if ( strlen( $content ) > $most ) {
			throw new Refusal( 'limit', $this->places->show( $question['path'] ) . ' has more than ' . $most . ' bytes' );
		}
		$bytes = $content;
		return array(
			'length'     => strlen( $content ),
			'executable' => 0 !== ( fileperms( $place ) & 0111 ),
		);
	}

	/**
	 * @param array<string,mixed> $question Request {path, most}.
	 * @return array<string,mixed>
	 */
	private function tree( array $question ): array {
		$found = array(
			'files' => array(),
			'left'  => array(),
		);
		try {
			$top = $this->places->existing( $question['path'] ?? null );
		} catch ( Refusal $refusal ) {
			if ( 'missing' !== $refusal->reason ) {
				throw $refusal;
			}
			// A directory that does not exist yet has no files.
			return $found;
		}
		if ( ! is_dir( $top ) ) {
			throw new Refusal( 'kind', $this->places->show( $question['path'] ) . ' is not a directory' );
		}
		$this->walk( $top, 0, (int) ( $question['most'] ?? 0 ), $found );
		return $found;
	}

	/**
	 * Collects files below a directory. Entries that cannot be synced are listed separately, so the host does
	 * not take them for deleted.
	 *
	 * @param string                                                             $directory Directory to read.
	 * @param int                                                                $depth     Depth of the
	 *   directory.
	 * @param int                                                                $most      Maximum number of
	 *   entries.
	 * @param array{files:list<array<int,mixed>>,left:list<array<int,string>>}   $found     Collected rows:
	 *                                                                                      [path, sha256,
	 *                                                                                      bytes, executable]
	 *                                                                                      and [path,
	 *                                                                                      reason].
	 */
	private function walk( string $directory, int $depth, int $most, array &$found ): void {
		if ( $depth > self::DEPTH ) {
			throw new Refusal( 'limit', $this->places->show( $this->places->name( $directory ) ) . ' is too deep' );
		}
		$names = @scandir( $directory );
		if ( false === $names ) {
			$found['left'][] = array( $this->places->name( $directory ), 'unreadable' );
			return;
		}
		foreach ( $names as $name ) {
			$place = $directory . '/' . $name;
			if ( '.' === $name || '..' === $name || Places::is_git( $name ) || is_link( $place ) ) {
				continue;
			}
			if ( count( $found['files'] ) + count( $found['left'] ) >= $most ) {
				throw new Refusal( 'limit', 'there are more than ' . $most . ' files; request a directory further down' );
			}
			if ( 1 !== preg_match( '/^[^\n\\\\]+$/Du', $name ) ) {
				$found['left'][] = array( $this->places->name( $place ), 'name' );
			} elseif ( is_dir( $place ) ) {
				$this->walk( $place, $depth + 1, $most, $found );
			} elseif ( ! is_file( $place ) ) {
				$found['left'][] = array( $this->places->name( $place ), 'kind' );
			} elseif ( false === ( $digest = @hash_file( 'sha256', $place ) ) ) {
				$found['left'][] = array( $this->places->name( $place ), 'unreadable' );
			} else {
				$found['files'][] = array( $this->places->name( $place ), $digest, (int) filesize( $place ), 0 !== ( fileperms( $place ) & 0111 ) );
			}
		}
	}

	/**
	 * @param mixed $path Path as the caller gave it.
	 * @return string sha256 of the current file; '' when there is no file.
	 */
	private function digest( mixed $path ): string {
		try {
			$place  = $this->places->existing( $path );
			$digest = is_file( $place ) ? @hash_file( 'sha256', $place ) : false;
		} catch ( Refusal ) {
			return '';
		}
		return false === $digest ? '' : $digest;
	}
}
