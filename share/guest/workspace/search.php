<?php
/**
 * Search operation of the workspace tools.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Searches a text or a regular expression in the text files below a path.
 */
final class Search {
	/** Maximum size of a file that is searched, in bytes. */
	private const FILE_BYTES = 4194304;
	/** Maximum length of the returned part of a line, in bytes. */
	private const LINE_BYTES = 400;
	/** Size limit of all lines that one request returns, in bytes. */
	private const PAGE_BYTES = 24576;

	public function __construct( private readonly Places $places, private readonly Reading $reading ) {}

	/**
	 * @param array<string,mixed> $request Request, described at the top of workspace.php.
	 * @return array<string,mixed>
	 */
	public function run( array $request ): array {
		$top     = $this->places->existing( $request['path'] ?? '.' );
		$pattern = $this->pattern( $request );
		$glob    = isset( $request['glob'] ) ? self::glob( (string) $request['glob'] ) : null;
		$limit   = max( 1, (int) ( $request['limit'] ?? 100 ) );
		$offset  = max( 0, (int) ( $request['offset'] ?? 0 ) );
		$context = max( 0, min( 5, (int) ( $request['context'] ?? 0 ) ) );
		$found   = array(
			'hits'    => array(),
			'next'    => null,
			'files'   => 0,
			'skipped' => 0,
		);

		$seen  = 0;
		$bytes = 0;
		foreach ( $this->files( $top, $glob ) as $file => $name ) {
			if ( ! is_readable( $file ) || filesize( $file ) > self::FILE_BYTES || $this->reading->is_binary( $file ) ) {
				++$found['skipped'];
				continue;
			}
			++$found['files'];
			$lines = explode( "\n", (string) file_get_contents( $file ) );
			foreach ( $lines as $index => $line ) {
				$at = $this->match( $pattern, rtrim( $line, "\r" ) );
				if ( null === $at ) {
					continue;
				}
				++$seen;
				if ( $seen <= $offset ) {
					continue;
				}
				if ( count( $found['hits'] ) >= $limit || $bytes > self::PAGE_BYTES ) {
					$found['next'] = $seen - 1;
					return $found;
				}
				$hit = array(
					'path' => $name,
					'line' => $index + 1,
					'text' => self::around( $line, $at ),
				);
				for ( $near = max( 0, $index - $context ); $context > 0 && $near <= min( count( $lines ) - 1, $index + $context ); $near++ ) {
					$hit['near'][ 'l' . ( $near + 1 ) ] = self::around( $lines[ $near ], 0 );
				}
				$bytes          += strlen( $hit['text'] ) + strlen( $name ) + array_sum( array_map( 'strlen', $hit['near'] ?? array() ) );
				$found['hits'][] = $hit;
			}
		}
		return $found;
	}

	/**
	 * @param string      $top  File or directory to search.
	 * @param string|null $glob Glob pattern for file names.
	 * @return \Generator<string,string> Displayed path by file system path.
	 */
	private function files( string $top, ?string $glob ): \Generator {
		if ( ! is_dir( $top ) ) {
			if ( 'file' !== filetype( $top ) ) {
				throw new Refusal( 'kind', $this->places->show( $this->places->name( $top ) ) . ' is not a regular file' );
			}
			yield $top => $this->places->name( $top );
			return;
		}
		foreach ( $this->reading->walk( $top, 64 ) as $below => $kind ) {
			$below = (string) $below;
			if ( 'file' === $kind && ( null === $glob || 1 === preg_match( $glob, $below ) || 1 === preg_match( $glob, basename( $below ) ) ) ) {
				yield $top . '/' . $below => $below;
			}
		}
	}

	/**
	 * @param array<string,mixed> $request Request to handle.
	 * @return array{string,bool} PCRE or plain text, and whether it is plain text.
	 */
	private function pattern( array $request ): array {
		$pattern = (string) ( $request['pattern'] ?? '' );
		$folded  = true === ( $request['ignore_case'] ?? false );
		if ( '' === $pattern || strlen( $pattern ) > 10000 ) {
			throw new Refusal( 'request', 'pattern must have 1 to 10000 bytes' );
		}
		if ( true !== ( $request['regex'] ?? false ) ) {
			if ( str_contains( $pattern, "\n" ) ) {
				throw new Refusal( 'request', 'pattern is searched in one line at a time and cannot contain a line end' );
			}
			return $folded ? array( '/' . preg_quote( $pattern, '/' ) . '/iu', false ) : array( $pattern, true );
		}
		$flags   = 'u' . ( $folded ? 'i' : '' );
		$pattern = "\x01" . $pattern . "\x01" . $flags;
		if ( str_contains( substr( $pattern, 1, -2 - ( $folded ? 1 : 0 ) ), "\x01" ) || false === @preg_match( $pattern, '' ) ) {
			$why = error_get_last()['message'] ?? 'it holds a control character';
			throw new Refusal( 'request', 'pattern is not a valid regular expression: ' . preg_replace( '/^preg_match\(\): /', '', $why ) );
		}
		return array( $pattern, false );
	}

	/**
	 * @param array{string,bool} $pattern Result of pattern().
	 * @param string             $line    Line to search.
	 * @return int|null Byte offset of the match.
	 */
	private function match( array $pattern, string $line ): ?int {
		list( $text, $literal ) = $pattern;
		if ( $literal ) {
			$at = strpos( $line, $text );
			return false === $at ? null : $at;
		}
		$found = @preg_match( $text, $line, $where, PREG_OFFSET_CAPTURE );
		if ( false === $found ) {
			// The line is not valid UTF-8, so it is matched again as bytes.
			$found = @preg_match( preg_replace( '/u(i?)$/', '$1', $text ), $line, $where, PREG_OFFSET_CAPTURE );
		}
		return 1 === $found ? (int) $where[0][1] : null;
	}

	private static function around( string $line, int $at ): string {
		$line = rtrim( $line, "\r" );
		if ( strlen( $line ) <= self::LINE_BYTES ) {
			return $line;
		}
		$start = max( 0, $at - 100 );
		return ( $start > 0 ? '…' : '' ) . mb_strcut( $line, $start, self::LINE_BYTES ) . ( $start + self::LINE_BYTES < strlen( $line ) ? '…' : '' );
	}

	/**
	 * Converts a glob to a regular expression: `*` and `?` stop at a slash, `**` does not, `{a,b}` is an
	 * alternative.
	 *
	 * @param string $glob Glob pattern.
	 * @return string PCRE pattern.
	 */
	private static function glob( string $glob ): string {
		$pattern = '';
		$depth   = 0;
		$length  = strlen( $glob );
		for ( $i = 0; $i < $length; $i++ ) {
			$c = $glob[ $i ];
			if ( '*' === $c && '*' === ( $glob[ $i + 1 ] ?? '' ) ) {
				++$i;
				if ( '/' === ( $glob[ $i + 1 ] ?? '' ) ) {
					++$i;
					$pattern .= '(?:.*/)?';
				} else {
					$pattern .= '.*';
				}
			} elseif ( '*' === $c ) {
				$pattern .= '[^/]*';
			} elseif ( '?' === $c ) {
				$pattern .= '[^/]';
			} elseif ( '{' === $c ) {
				++$depth;
				$pattern .= '(?:';
			} elseif ( '}' === $c && $depth > 0 ) {
				--$depth;
				$pattern .= ')';
			} elseif ( ',' === $c && $depth > 0 ) {
				$pattern .= '|';
			} else {
				$pattern .= preg_quote( $c, '~' );
			}
		}
		if ( $depth > 0 ) {
			throw new Refusal( 'request', 'glob has a { without a matching }' );
		}
		return '~^(?:' . $pattern . ')$~sD';
	}
}
