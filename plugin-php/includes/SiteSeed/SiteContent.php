<?php
/**
 * Selects content of a WordPress site and removes what is private.
 *
 * Generated from share/host/site-content.php by: cargo xtask generate.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\SiteSeed;

defined( 'ABSPATH' ) || exit;

/**
 * Content of one site, as far as scopes select it.
 */
final class SiteContent {

	/** Size limit of the fixture, in bytes. */
	private const BYTES = 4 * 1024 * 1024;

	/** Maximum number of rows of one kind. */
	private const MOST = 100;

	/** Options that are never read: they hold secrets, sessions or addresses. */
	private const PRIVATE_OPTIONS = '/(?:pass|secret|token|salt|nonce|credential|license|_key|^key|_keys|api|auth|private|mail|smtp|session|transient|cron$|recovery|user_roles$|^admin_)/i';

	/** Members of options that hold secrets. */
	private const SECRET_MEMBERS = '/(?:pass(?:word|wd|phrase)?$|secret|token|salt$|credential|api_?key|private_?key|license_?key|_key$|^key$)/i';

	/**
	 * Creates the object.
	 *
	 * @param SiteDatabase         $database Database of the site.
	 * @param array<string, mixed> $scopes   Scopes by kind.
	 */
	public function __construct( private readonly SiteDatabase $database, private readonly array $scopes ) {}

	/**
	 * Returns the selected content as a fixture in JSON.
	 *
	 * @param string $name Name of the seed.
	 * @throws \RuntimeException When an option can hold a secret, or the content is too large.
	 * @throws \JsonException When the content cannot be written as JSON.
	 */
	public function json( string $name ): string {
		$fixture = [
			'schema'     => 'wp-codebox/site-seed-fixture/v1',
			'name'       => $name,
			'provenance' => [ 'source' => 'parent_site' ],
		] + $this->fixture();
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- this file also runs without WordPress.
		$json = json_encode( $fixture, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR );
		if ( strlen( $json ) > self::BYTES ) {
			throw new \RuntimeException( sprintf( 'the selected content has more than %d MiB; select fewer records', self::BYTES / 1024 / 1024 ) );
		}
		return $json;
	}

	/**
	 * Returns the selected content.
	 *
	 * @return array<string, mixed>
	 */
	private function fixture(): array {
		$fixture = [];
		foreach ( [ 'users', 'terms', 'posts', 'media', 'options' ] as $kind ) {
			if ( isset( $this->scopes[ $kind ] ) ) {
				$fixture[ $kind ] = $this->$kind( $this->scopes[ $kind ] );
			}
		}
		if ( ! empty( $this->scopes['activePlugins'] ) ) {
			$active                   = self::decoded( $this->option( 'active_plugins' ) );
			$fixture['activePlugins'] = is_array( $active ) ? array_values( array_filter( $active, 'is_string' ) ) : [];
		}
		if ( ! empty( $this->scopes['activeTheme'] ) ) {
			$fixture['activeTheme'] = $this->option( 'stylesheet' );
		}
		return $fixture;
	}

	/**
	 * Returns users with id and role, and with the login only if the scope names it. The guest gives each user
	 * another login.
	 *
	 * @param array<string, mixed> $scope Scope.
	 * @return list<array<string, mixed>>
	 */
	private function users( array $scope ): array {
		$where = $this->where( $scope, [ 'ids' => 'u.ID', 'names' => 'u.user_login' ] );
		$rows  = $this->database->rows(
			"SELECT u.ID, u.user_login, m.meta_value AS roles FROM {users} u JOIN {usermeta} m ON m.user_id = u.ID AND m.meta_key = ? $where[0] ORDER BY u.ID",
			[ $this->database->prefix . 'capabilities', ...$where[1] ]
		);
		$users = [];
		foreach ( $rows as $row ) {
			$roles = self::decoded( (string) $row['roles'] );
			$role  = is_array( $roles ) ? (string) ( array_key_first( array_filter( $roles ) ) ?? '' ) : '';
			if ( empty( $scope['roles'] ) || in_array( $role, $scope['roles'], true ) ) {
				$users[] = [
					'id'   => (int) $row['ID'],
					'role' => $role,
				] + ( empty( $scope['names'] ) ? [] : [ 'user_login' => $row['user_login'] ] );
			}
		}
		return array_slice( $users, 0, $this->most( $scope ) );
	}

	/**
	 * Returns terms.
	 *
	 * @param array<string, mixed> $scope Scope.
	 * @return list<array<string, mixed>>
	 */
	private function terms( array $scope ): array {
		$where = $this->where( $scope, [ 'ids' => 't.term_id', 'slugs' => 't.slug', 'names' => 't.name', 'taxonomies' => 'x.taxonomy' ] );
		$rows  = $this->database->rows(
			"SELECT t.term_id, t.name, t.slug, x.taxonomy, x.description, x.parent FROM {terms} t JOIN {term_taxonomy} x ON x.term_id = t.term_id $where[0] ORDER BY t.term_id LIMIT " . $this->most( $scope ),
			$where[1]
		);
		return array_map( static fn ( array $row ): array => array_replace( $row, [ 'term_id' => (int) $row['term_id'], 'parent' => (int) $row['parent'] ] ), $rows );
	}

	/**
	 * Returns posts without those that are private or protected by a password, unless the scope names a status.
	 *
	 * @param array<string, mixed> $scope Scope.
	 * @return list<array<string, mixed>>
	 */
	private function posts( array $scope ): array {
		$scope += [ 'postTypes' => [], 'statuses' => [] ];
		$types  = $scope['postTypes'] ? $scope['postTypes'] : [ 'post', 'page' ];
		$states = $scope['statuses'] ? $scope['statuses'] : [ 'publish' ];
		return $this->rows_of_posts( [ 'postTypes' => $types, 'statuses' => $states ] + $scope );
	}

	/**
	 * Returns the rows of media, without their files.
	 *
	 * @param array<string, mixed> $scope Scope.
	 * @return list<array<string, mixed>>
	 */
	private function media( array $scope ): array {
		return $this->rows_of_posts( [ 'postTypes' => [ 'attachment' ] ] + $scope );
	}

	/**
	 * Returns rows of the table of posts.
	 *
	 * @param array<string, mixed> $scope Scope.
	 * @return list<array<string, mixed>>
	 */
	private function rows_of_posts( array $scope ): array {
		$where = $this->where( $scope, [ 'ids' => 'ID', 'slugs' => 'post_name', 'postTypes' => 'post_type', 'statuses' => 'post_status' ], "post_password = ''" );
		$rows  = $this->database->rows(
			"SELECT ID, post_type, post_status, post_name, post_title, post_content, post_excerpt, post_date, post_author, post_parent, menu_order, comment_status, post_mime_type FROM {posts} $where[0] ORDER BY ID LIMIT " . $this->most( $scope ),
			$where[1]
		);
		foreach ( $rows as $at => $row ) {
			$terms = [];
			foreach ( $this->database->rows( 'SELECT x.taxonomy, t.slug FROM {term_relationships} r JOIN {term_taxonomy} x ON x.term_taxonomy_id = r.term_taxonomy_id JOIN {terms} t ON t.term_id = x.term_id WHERE r.object_id = ?', [ (int) $row['ID'] ] ) as $term ) {
				$terms[ $term['taxonomy'] ][] = $term['slug'];
			}
			foreach ( [ 'ID', 'post_author', 'post_parent', 'menu_order' ] as $number ) {
				$row[ $number ] = (int) $row[ $number ];
			}
			$row['id']   = $row['ID'];
			$rows[ $at ] = $row + ( $terms ? [ 'terms' => $terms ] : [] );
		}
		return $rows;
	}

	/**
	 * Returns options that the scope names.
	 *
	 * @param array<string, mixed> $scope Scope.
	 * @return array<string, mixed>
	 * @throws \RuntimeException When an option can hold a secret.
	 */
	private function options( array $scope ): array {
		$options = [];
		foreach ( array_slice( $scope['names'], 0, $this->most( $scope ) ) as $name ) {
			if ( 1 === preg_match( self::PRIVATE_OPTIONS, $name ) ) {
				throw new \RuntimeException( "the option $name can hold a secret or an address; set it in a step" );
			}
			$rows = $this->database->rows( 'SELECT option_value FROM {options} WHERE option_name = ?', [ $name ] );
			if ( [] === $rows ) {
				continue;
			}
			$value = self::decoded( (string) $rows[0]['option_value'] );
			if ( self::has_secret( $value ) ) {
				throw new \RuntimeException( "the option $name has a member that can hold a secret; set the option in a step" );
			}
			$options[ $name ] = $value;
		}
		return $options;
	}

	/**
	 * Returns the value of a stored text: an array or scalar when it is serialized, else the text itself. Objects are not
	 * created.
	 *
	 * @param string $text Text of the database.
	 */
	private static function decoded( string $text ): mixed {
		// phpcs:ignore Generic.PHP.ForbiddenFunctions, Generic.PHP.NoSilencedErrors -- texts that are not serialized cause a notice.
		$value = @unserialize( $text, [ 'allowed_classes' => false ] );
		return false === $value && 'b:0;' !== $text ? $text : $value;
	}

	/**
	 * Checks whether a value has, at any depth, a member whose name says that it holds a secret.
	 *
	 * @param mixed $value Value of an option.
	 */
	private static function has_secret( mixed $value ): bool {
		foreach ( is_array( $value ) || is_object( $value ) ? (array) $value : [] as $name => $member ) {
			$holds = is_string( $name ) && '' !== $member && 1 === preg_match( self::SECRET_MEMBERS, $name );
			if ( $holds || self::has_secret( $member ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Returns the text of an option; '' when there is none.
	 *
	 * @param string $name Name of the option.
	 */
	private function option( string $name ): string {
		$rows = $this->database->rows( 'SELECT option_value FROM {options} WHERE option_name = ?', [ $name ] );
		return (string) ( $rows[0]['option_value'] ?? '' );
	}

	/**
	 * Returns the maximum number of rows of a scope.
	 *
	 * @param array<string, mixed> $scope Scope.
	 */
	private function most( array $scope ): int {
		return min( self::MOST, max( 1, (int) ( $scope['maxRecords'] ?? self::MOST ) ) );
	}

	/**
	 * Returns the condition of a scope and its values.
	 *
	 * @param array<string, mixed>  $scope   Scope.
	 * @param array<string, string> $columns Columns by list of the scope.
	 * @param string                $always  Condition that always applies.
	 * @return array{string, list<int|string>}
	 */
	private function where( array $scope, array $columns, string $always = '1 = 1' ): array {
		$parts  = [ $always ];
		$values = [];
		foreach ( $columns as $list => $column ) {
			if ( ! empty( $scope[ $list ] ) ) {
				$parts[] = "$column IN (" . implode( ', ', array_fill( 0, count( $scope[ $list ] ), '?' ) ) . ')';
				array_push( $values, ...$scope[ $list ] );
			}
		}
		return [ 'WHERE ' . implode( ' AND ', $parts ), $values ];
	}
}
