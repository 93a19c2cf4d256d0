<?php
/**
 * Observes operations on the object cache, options and transients. Loaded after WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * WordPress's object cache, extended to report each operation to an observer.
 */
final class Observed_Cache extends \WP_Object_Cache {
	/** Observer that gets the operations. */
	public static ?Churn $churn = null;

	/** Depth of nested cache calls; only the outermost call is reported. */
	private int $depth = 0;

	/** {@inheritDoc} */
	public function add( $key, $data, $group = 'default', $expire = 0 ) {
		return $this->reported( 'add', $key, $group, fn () => parent::add( $key, $data, $group, $expire ) );
	}

	/** {@inheritDoc} */
	public function replace( $key, $data, $group = 'default', $expire = 0 ) {
		return $this->reported( 'replace', $key, $group, fn () => parent::replace( $key, $data, $group, $expire ) );
	}

	/** {@inheritDoc} */
	public function set( $key, $data, $group = 'default', $expire = 0 ) {
		return $this->reported( 'set', $key, $group, fn () => parent::set( $key, $data, $group, $expire ) );
	}

	/** {@inheritDoc} */
	public function delete( $key, $group = 'default', $deprecated = false ) {
		return $this->reported( 'delete', $key, $group, fn () => parent::delete( $key, $group ) );
	}

	/** {@inheritDoc} */
	public function incr( $key, $offset = 1, $group = 'default' ) {
		return $this->reported( 'increment', $key, $group, fn () => parent::incr( $key, $offset, $group ) );
	}

	/** {@inheritDoc} */
	public function decr( $key, $offset = 1, $group = 'default' ) {
		return $this->reported( 'decrement', $key, $group, fn () => parent::decr( $key, $offset, $group ) );
	}

	/** {@inheritDoc} */
	public function flush() {
		return $this->reported( 'flush', '', '', fn () => parent::flush() );
	}

	/** {@inheritDoc} */
	public function flush_group( $group ) {
		return $this->reported( 'flush', '', $group, fn () => parent::flush_group( $group ) );
	}

	/** {@inheritDoc} */
	public function get( $key, $group = 'default', $force = false, &$found = null ) {
		$value = parent::get( $key, $group, $force, $found );
		if ( 0 === $this->depth ) {
			self::$churn?->happened( 'objectCache', $found ? 'hit' : 'miss', $key, $group );
		}
		return $value;
	}

	/**
	 * Runs an operation and reports it, unless another cache function called this one.
	 *
	 * @param string   $operation Name of the operation.
	 * @param mixed    $key       Cache key.
	 * @param mixed    $group     Cache group.
	 * @param \Closure $call      Performs the operation.
	 */
	private function reported( string $operation, mixed $key, mixed $group, \Closure $call ): mixed {
		if ( 0 === $this->depth ) {
			self::$churn?->happened( 'objectCache', $operation, $key, $group );
		}
		++$this->depth;
		try {
			return $call();
		} finally {
			--$this->depth;
		}
	}

	/**
	 * Copies the content of an object cache into one that is observed.
	 *
	 * @param \WP_Object_Cache $cache Cache to copy.
	 */
	public static function of( \WP_Object_Cache $cache ): self {
		$observed = new self();
		foreach ( ( new \ReflectionClass( \WP_Object_Cache::class ) )->getProperties() as $property ) {
			if ( ! $property->isStatic() && $property->isInitialized( $cache ) ) {
				$property->setValue( $observed, $property->getValue( $cache ) );
			}
		}
		return $observed;
	}
}

/**
 * Counts operations on the object cache, options and transients.
 */
final class Churn {
	/** Names of the operations by kind of storage. */
	private const OPERATIONS = array(
		'objectCache'    => array( 'hit', 'miss', 'add', 'set', 'replace', 'increment', 'decrement', 'delete', 'flush' ),
		'options'        => array( 'read', 'add', 'update', 'delete' ),
		'transients'     => array( 'hit', 'miss', 'set', 'delete' ),
		'siteTransients' => array( 'hit', 'miss', 'set', 'delete' ),
	);

	/**
	 * Number of operations by kind of storage and operation.
	 *
	 * @var array<string,array<string,int>>
	 */
	private array $counts = array();

	/**
	 * The first operations in the order in which they occurred, as samples for the result.
	 *
	 * @var list<array<string,string>>
	 */
	private array $samples = array();

	/** Number of all operations, including those that are not samples. */
	private int $total = 0;

	/**
	 * Number of writes by key of the object cache, to find keys that one request writes repeatedly.
	 *
	 * @var array<string,int>
	 */
	private array $writes = array();

	/** Whether the object cache is observed; only WordPress's built-in one can be. */
	private bool $cache = false;

	/**
	 * Creates the object.
	 *
	 * @param int $limit Maximum number of listed operations.
	 */
	public function __construct( private readonly int $limit ) {
		foreach ( self::OPERATIONS as $kind => $names ) {
			$this->counts[ $kind ] = array_fill_keys( $names, 0 );
		}
	}

	/**
	 * Starts the observation.
	 */
	public function begin(): void {
		$this->cache = \WP_Object_Cache::class === get_class( $GLOBALS['wp_object_cache'] ) && ! wp_using_ext_object_cache();
		if ( $this->cache ) {
			Observed_Cache::$churn      = $this;
			$GLOBALS['wp_object_cache'] = Observed_Cache::of( $GLOBALS['wp_object_cache'] );
		}
		add_action( 'all', array( $this, 'called' ), PHP_INT_MIN, 3 );
	}

	/**
	 * Ends the observation.
	 */
	public function end(): void {
		remove_action( 'all', array( $this, 'called' ), PHP_INT_MIN );
		Observed_Cache::$churn = null;
	}

	/**
	 * Records the operation that a WordPress hook reports. Callback of the hook `all`.
	 *
	 * @param mixed $hook  Name of the hook.
	 * @param mixed $value First argument of the hook.
	 * @param mixed $name  Second argument of the hook.
	 */
	public function called( mixed $hook = null, mixed $value = null, mixed $name = null ): void {
		$hook = (string) $hook;
		match ( $hook ) {
			'pre_option' => $this->happened( 'options', 'read', $name, '' ),
			'added_option' => $this->happened( 'options', 'add', $value, '' ),
			'updated_option' => $this->happened( 'options', 'update', $value, '' ),
			'deleted_option' => $this->happened( 'options', 'delete', $value, '' ),
			'set_transient' => $this->happened( 'transients', 'set', $value, '' ),
			'set_site_transient' => $this->happened( 'siteTransients', 'set', $value, '' ),
			'deleted_transient' => $this->happened( 'transients', 'delete', $value, '' ),
			'deleted_site_transient' => $this->happened( 'siteTransients', 'delete', $value, '' ),
			default => 1 === preg_match( '/^(site_)?transient_(.+)$/s', $hook, $found ) && $name === $found[2] ? $this->happened( '' === $found[1] ? 'transients' : 'siteTransients', false === $value ? 'miss' : 'hit', $found[2], '' ) : null,
		};
	}

	/**
	 * Counts an operation and stores it among the samples.
	 *
	 * @param string $kind      Kind of the storage.
	 * @param string $operation Name of the operation.
	 * @param mixed  $key       Cache key or option name.
	 * @param mixed  $group     Cache group.
	 */
	public function happened( string $kind, string $operation, mixed $key, mixed $group ): void {
		++$this->total;
		++$this->counts[ $kind ][ $operation ];
		$key   = is_scalar( $key ) ? cut( (string) $key, 200 ) : get_debug_type( $key );
		$group = is_scalar( $group ) && '' !== (string) $group ? cut( (string) $group, 100 ) : 'default';
		if ( 'objectCache' === $kind && ! in_array( $operation, array( 'hit', 'miss' ), true ) && count( $this->writes ) < 5000 ) {
			$this->writes[ "$group:$key" ] = ( $this->writes[ "$group:$key" ] ?? 0 ) + 1;
		}
		if ( count( $this->samples ) < $this->limit ) {
			$this->samples[] = array(
				'kind'      => $kind,
				'operation' => $operation,
				'key'       => $key,
			) + ( 'objectCache' === $kind ? array( 'group' => $group ) : array() );
		}
	}

	/**
	 * Returns the counts, the samples and the keys that were written repeatedly.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		$counts   = $this->cache ? $this->counts : array_diff_key( $this->counts, array( 'objectCache' => 0 ) );
		$rewrites = array_filter( $this->writes, static fn ( int $count ): bool => $count > 1 );
		uksort( $rewrites, static fn ( $a, $b ): int => array( $rewrites[ $b ], (string) $a ) <=> array( $rewrites[ $a ], (string) $b ) );
		return $counts + ( $this->cache ? array() : array( 'objectCache' => array( 'observed' => false ) ) ) + array(
			'rewritten' => array_map(
				static fn ( $key, int $count ): array => array(
					'key'    => (string) $key,
					'writes' => $count,
				),
				array_keys( array_slice( $rewrites, 0, 50, true ) ),
				array_slice( $rewrites, 0, 50, true )
			),
			'samples'   => $this->samples,
			'total'     => $this->total,
			'truncated' => $this->total > count( $this->samples ),
		);
	}
}
