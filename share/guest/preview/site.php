<?php
/**
 * Decides which files the guest's built-in web server serves, and with which content type.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * The WordPress directory, and which of its files a web server may serve.
 */
final class Site {
	/** Content types by suffix. Other suffixes get `application/octet-stream`. */
	private const TYPES = array(
		'avif'        => 'image/avif',
		'bmp'         => 'image/bmp',
		'css'         => 'text/css; charset=UTF-8',
		'csv'         => 'text/csv; charset=UTF-8',
		'eot'         => 'application/vnd.ms-fontobject',
		'gif'         => 'image/gif',
		'htm'         => 'text/html; charset=UTF-8',
		'html'        => 'text/html; charset=UTF-8',
		'ico'         => 'image/x-icon',
		'jpeg'        => 'image/jpeg',
		'jpg'         => 'image/jpeg',
		'js'          => 'text/javascript; charset=UTF-8',
		'json'        => 'application/json',
		'map'         => 'application/json',
		'md'          => 'text/plain; charset=UTF-8',
		'mjs'         => 'text/javascript; charset=UTF-8',
		'mp3'         => 'audio/mpeg',
		'mp4'         => 'video/mp4',
		'ogg'         => 'audio/ogg',
		'otf'         => 'font/otf',
		'pdf'         => 'application/pdf',
		'png'         => 'image/png',
		'svg'         => 'image/svg+xml',
		'ttf'         => 'font/ttf',
		'txt'         => 'text/plain; charset=UTF-8',
		'wasm'        => 'application/wasm',
		'wav'         => 'audio/wav',
		'webm'        => 'video/webm',
		'webmanifest' => 'application/manifest+json',
		'webp'        => 'image/webp',
		'woff'        => 'font/woff',
		'woff2'       => 'font/woff2',
		'xml'         => 'application/xml',
		'xsl'         => 'text/xsl',
		'zip'         => 'application/zip',
	);

	/** File names that are never served: databases, dumps, logs, backups, source files under another suffix. */
	private const HIDDEN = '/^(?:wp-config.*|php\.ini|.*\.(?:sqlite3?|db3?|sql|log|bak|old|orig|swp|inc|phar|phtml|phps|php[0-9])(?:-wal|-shm|-journal)?|.*~)$/i';

	/**
	 * @param string $root Directory of WordPress.
	 */
	public function __construct( private readonly string $root ) {}

	/**
	 * Checks whether the request is the readiness probe of the program that started the server.
	 */
	public function is_probe(): bool {
		return '/.codebox/ready' === ( $_SERVER['REQUEST_URI'] ?? '' ) && ! isset( $_SERVER['HTTP_X_CODEBOX_ORIGIN'] );
	}

	/**
	 * Checks whether the reverse proxy requests a login; prepares the environment for it.
	 */
	public function is_login(): bool {
		if ( '/.codebox/login' !== ( $_SERVER['REQUEST_URI'] ?? '' ) || ! isset( $_SERVER['HTTP_X_CODEBOX_LOGIN'] ) ) {
			return false;
		}
		$this->set_origin();
		$this->script( 'index.php', '' );
		return true;
	}

	/**
	 * Answers the request, or prepares the environment for the script that does.
	 *
	 * @return string|null Script to require; null when the request is already answered.
	 */
	public function answer(): ?string {
		$path  = rawurldecode( explode( '?', (string) ( $_SERVER['REQUEST_URI'] ?? '/' ), 2 )[0] );
		$parts = array_values( array_filter( explode( '/', $path ), static fn ( string $part ): bool => '' !== $part ) );
		foreach ( $parts as $part ) {
			if ( '.' === $part || '..' === $part || 1 === preg_match( '/[\x00-\x1f\\\\]/', $part ) ) {
				return $this->refuse( 400 );
			}
		}
		if ( $this->is_hidden( $parts ) ) {
			return $this->refuse( 404 );
		}
		$this->set_origin();
		$below = implode( '/', $parts );
		$place = '' === $below ? $this->root : $this->root . '/' . $below;
		if ( is_dir( $place ) ) {
			if ( '' !== $below && ! str_ends_with( $path, '/' ) && $this->has_index( $place ) ) {
				return $this->add_slash( $below );
			}
			if ( is_file( $place . '/index.php' ) ) {
				return $this->script( ltrim( $below . '/index.php', '/' ), '' );
			}
			if ( is_file( $place . '/index.html' ) ) {
				return $this->send( $place . '/index.html' );
			}
			return $this->script( 'index.php', '' );
		}
		if ( is_file( $place ) && ! str_ends_with( $path, '/' ) ) {
			return $this->is_script( $place ) ? $this->script( $below, '' ) : $this->send( $place );
		}
		return $this->script_within( $parts ) ?? $this->script( 'index.php', '' );
	}

	/**
	 * Checks whether a path must not be served, because it is or leads through a hidden file or directory. A
	 * name that does not exist may be a page slug such as `wp-config-guide`, so it is not hidden.
	 *
	 * @param list<string> $parts Segments of the path.
	 */
	private function is_hidden( array $parts ): bool {
		$place = $this->root;
		foreach ( $parts as $part ) {
			$place .= '/' . $part;
			// file_exists() follows symlinks, so it returns false for a dangling one.
			if ( ! is_link( $place ) && ! file_exists( $place ) ) {
				return false;
			}
			if ( '.' === $part[0] && '.well-known' !== $part || 1 === preg_match( self::HIDDEN, $part ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Makes WordPress use the origin that the visitor sees as the site's URL.
	 */
	private function set_origin(): void {
		$origin = (string) ( $_SERVER['HTTP_X_CODEBOX_ORIGIN'] ?? '' );
		unset( $_SERVER['HTTP_X_CODEBOX_ORIGIN'] );
		if ( 1 !== preg_match( '~^(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?$~D', $origin, $match ) ) {
			$origin = 'http://' . ( $_SERVER['HTTP_HOST'] ?? '127.0.0.1' );
			if ( 1 !== preg_match( '~^(http)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?$~D', $origin, $match ) ) {
				$origin = 'http://127.0.0.1';
				$match  = array( $origin, 'http', '127.0.0.1' );
			}
		}
		$secure = 'https' === $match[1];
		if ( $secure ) {
			$_SERVER['HTTPS'] = 'on';
		}
		$_SERVER['REQUEST_SCHEME'] = $match[1];
		$_SERVER['SERVER_NAME']    = $match[2];
		$_SERVER['SERVER_PORT']    = $match[3] ?? ( $secure ? '443' : '80' );
		$_SERVER['HTTP_HOST']      = explode( '://', $origin, 2 )[1];
		define( 'WP_HOME', $origin );
		define( 'WP_SITEURL', $origin );
	}

	/**
	 * Finds a script with trailing path info, as in `/index.php/2026/11/`.
	 *
	 * @param list<string> $parts Segments of the path.
	 */
	private function script_within( array $parts ): ?string {
		$below = '';
		foreach ( $parts as $index => $part ) {
			$below = ltrim( $below . '/' . $part, '/' );
			$place = $this->root . '/' . $below;
			if ( is_file( $place ) ) {
				return $this->is_script( $place )
					? $this->script( $below, '/' . implode( '/', array_slice( $parts, $index + 1 ) ) )
					: null;
			}
			if ( ! is_dir( $place ) ) {
				return null;
			}
		}
		return null;
	}

	private function script( string $below, string $rest ): string {
		$_SERVER['DOCUMENT_ROOT']   = $this->root;
		$_SERVER['SCRIPT_FILENAME'] = $this->root . '/' . $below;
		$_SERVER['SCRIPT_NAME']     = '/' . $below;
		$_SERVER['PHP_SELF']        = '/' . $below . $rest;
		unset( $_SERVER['PATH_INFO'], $_SERVER['ORIG_PATH_INFO'], $_SERVER['PATH_TRANSLATED'] );
		if ( '' !== $rest ) {
			$_SERVER['PATH_INFO'] = $rest;
		}
		return $_SERVER['SCRIPT_FILENAME'];
	}

	private function is_script( string $place ): bool {
		return 'php' === strtolower( pathinfo( $place, PATHINFO_EXTENSION ) );
	}

	private function has_index( string $place ): bool {
		return is_file( $place . '/index.php' ) || is_file( $place . '/index.html' );
	}

	private function add_slash( string $below ): null {
		$query  = (string) ( $_SERVER['QUERY_STRING'] ?? '' );
		$target = '/' . implode( '/', array_map( 'rawurlencode', explode( '/', $below ) ) ) . '/';
		header( 'Location: ' . WP_HOME . $target . ( '' === $query ? '' : '?' . $query ), true, 301 );
		return null;
	}

	private function send( string $place ): null {
		$method = (string) ( $_SERVER['REQUEST_METHOD'] ?? 'GET' );
		if ( 'GET' !== $method && 'HEAD' !== $method ) {
			return $this->refuse( 405 );
		}
		$file = @fopen( $place, 'rb' );
		if ( false === $file ) {
			return $this->refuse( 403 );
		}
		$type = self::TYPES[ strtolower( pathinfo( $place, PATHINFO_EXTENSION ) ) ] ?? 'application/octet-stream';
		$stat = fstat( $file );
		header( 'Content-Type: ' . $type );
		header( 'Content-Length: ' . $stat['size'] );
		header( 'Last-Modified: ' . gmdate( 'D, d M Y H:i:s', $stat['mtime'] ) . ' GMT' );
		if ( 'GET' === $method ) {
			fpassthru( $file );
		}
		fclose( $file );
		return null;
	}

	private function refuse( int $status ): null {
		http_response_code( $status );
		header( 'Content-Type: text/plain; charset=UTF-8' );
		$words = array(
			400 => 'This path is malformed.',
			403 => 'This file cannot be read.',
			404 => 'There is nothing here.',
			405 => 'A file can only be read.',
		);
		echo $words[ $status ], "\n";
		return null;
	}
}
