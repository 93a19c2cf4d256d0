<?php
/**
 * Lists the files in wp-content that filters select.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Lists files with digests, sorted and limited; symlinks are listed but not followed.
 */
final class Content_Files {
	/** Maximum number of listed files. */
	private const FILES = 5000;
	/** Maximum number of bytes that are read for digests, in all files together. */
	private const BYTES = 512 << 20;
	/** Files of the guest itself, which are not part of the site. */
	private const OWN = array( 'database', 'db.php', 'mu-plugins/wp-codebox-guest.php', 'upgrade', 'cache' );

	/**
	 * Creates the object.
	 *
	 * @param list<string> $include Patterns below wp-content; empty includes everything.
	 * @param list<string> $exclude Patterns below wp-content.
	 */
	public function __construct( private readonly array $include, private readonly array $exclude ) {
		foreach ( array_merge( $include, $exclude ) as $pattern ) {
			if ( str_starts_with( $pattern, '/' ) || in_array( '..', explode( '/', $pattern ), true ) ) {
				throw Refusal::input( sprintf( '%s is not a pattern below wp-content: write plugins/example/* or uploads', Arguments::shown( $pattern ) ) );
			}
		}
	}

	/**
	 * Returns the files: {count, bytes, sha256, truncated, items: [{path, bytes, sha256}]}; the outer sha256
	 * is over the lines "digest  path".
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		$items  = array();
		$bytes  = 0;
		$whole  = true;
		$digest = hash_init( 'sha256' );
		foreach ( $this->paths() as $path ) {
			$place = WP_CONTENT_DIR . '/' . $path;
			if ( is_link( $place ) ) {
				$items[] = array(
					'path' => mb_scrub( $path, 'UTF-8' ),
					'link' => true,
				);
				continue;
			}
			$size = (int) filesize( $place );
			if ( count( $items ) >= self::FILES || $bytes + $size > self::BYTES || ! is_readable( $place ) ) {
				$whole = false;
				continue;
			}
			$bytes  += $size;
			$sha256  = (string) hash_file( 'sha256', $place );
			$items[] = array(
				'path'   => mb_scrub( $path, 'UTF-8' ),
				'bytes'  => $size,
				'sha256' => $sha256,
			);
			hash_update( $digest, "$sha256  $path\n" );
		}
		return array(
			'count'     => count( $items ),
			'bytes'     => $bytes,
			'sha256'    => hash_final( $digest ),
			'truncated' => ! $whole,
			'items'     => $items,
		);
	}

	/**
	 * Returns the sorted paths below wp-content.
	 *
	 * @return list<string>
	 */
	private function paths(): array {
		$paths = array();
		$inner = new \RecursiveCallbackFilterIterator(
			new \RecursiveDirectoryIterator( WP_CONTENT_DIR, \FilesystemIterator::SKIP_DOTS ),
			fn ( \SplFileInfo $entry ): bool => ! in_array( $entry->getFilename(), array( '.git', 'node_modules' ), true )
				&& ! $this->covered( $this->relative( $entry ), array_merge( self::OWN, $this->exclude ) )
		);
		foreach ( new \RecursiveIteratorIterator( $inner ) as $entry ) {
			$path = $this->relative( $entry );
			if ( ( $entry->isFile() || $entry->isLink() ) && ( array() === $this->include || $this->covered( $path, $this->include ) ) ) {
				$paths[] = $path;
			}
			if ( count( $paths ) > 4 * self::FILES ) {
				break;
			}
		}
		sort( $paths, SORT_STRING );
		return $paths;
	}

	/**
	 * Returns the path of a directory entry relative to wp-content.
	 *
	 * @param \SplFileInfo $entry Directory entry.
	 */
	private function relative( \SplFileInfo $entry ): string {
		return substr( $entry->getPathname(), strlen( WP_CONTENT_DIR ) + 1 );
	}

	/**
	 * Checks whether a path or one of its parent directories matches one of the patterns.
	 *
	 * @param string       $path     Path below wp-content.
	 * @param list<string> $patterns Patterns to match.
	 */
	private function covered( string $path, array $patterns ): bool {
		for ( $part = $path; '' !== $part && '.' !== $part; $part = dirname( $part ) ) {
			if ( State::matches( $part, array_map( static fn ( string $pattern ): string => rtrim( $pattern, '/' ), $patterns ) ) ) {
				return true;
			}
		}
		return false;
	}
}
