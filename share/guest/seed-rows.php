<?php
/**
 * Creates the rows of a fixture (test content) that scopes select, through WordPress's functions.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Creates the selected rows of one fixture.
 */
final class Seed {

	/**
	 * Maximum number of rows of one kind that a scope without a limit selects.
	 */
	private const MOST = 100;

	/**
	 * Highest id of a post that WordPress's installation creates: the post, the page and the privacy policy.
	 */
	private const NEW_SITE_POSTS = 3;

	/**
	 * Number of created rows by kind.
	 *
	 * @var array<string, int>
	 */
	private array $created = array();

	/**
	 * Number of fixture rows that no scope selected, by kind.
	 *
	 * @var array<string, int>
	 */
	private array $skipped = array();

	/**
	 * Ids that the rows have on this site, by kind and by their id in the fixture.
	 *
	 * @var array<string, array<int|string, int>>
	 */
	private array $ids = array();

	/**
	 * Errors of rows that could not be created, one sentence each.
	 *
	 * @var string[]
	 */
	private array $problems = array();

	/**
	 * Rows that got another id than in the fixture although ids are kept where possible, one sentence each.
	 *
	 * @var string[]
	 */
	private array $moved = array();

	/**
	 * Takes the fixture and the scopes.
	 *
	 * @param array<string, mixed> $fixture Rows by kind.
	 * @param array<string, mixed> $scopes  Scopes by kind.
	 * @param Seed_Ids             $kept    Which ids the rows get.
	 * @param string               $absent  What to do with plugins and themes that the guest lacks: `skip` or `fail`.
	 */
	public function __construct( private array $fixture, private array $scopes, private Seed_Ids $kept, private string $absent ) {}

	/**
	 * Creates the selected rows; users first, because posts have authors.
	 */
	public function run(): void {
		$this->each( 'users', array( $this, 'user' ) );
		$this->each( 'terms', array( $this, 'term' ) );
		$this->each( 'posts', array( $this, 'post' ) );
		$this->each( 'media', array( $this, 'medium' ) );
		$this->options();
		foreach ( seed_switches( $this->fixture, $this->scopes, $this->absent ) as $kind => $outcome ) {
			$this->created[ $kind ] = $outcome['created'];
			$this->skipped[ $kind ] = $outcome['skipped'];
			array_push( $this->problems, ...$outcome['problems'] );
		}
	}

	/**
	 * Returns the counts and ids of the created rows.
	 *
	 * @return array<string, object>
	 */
	public function answer(): array {
		return array(
			'created' => (object) $this->created,
			'skipped' => (object) $this->skipped,
			'moved'   => $this->moved,
			'ids'     => (object) array_map( static fn( array $rows ): object => (object) $rows, $this->ids ),
		);
	}

	/**
	 * Returns the errors of the rows that could not be created.
	 *
	 * @return string[]
	 */
	public function problems(): array {
		return $this->problems;
	}

	/**
	 * Creates the selected rows of one kind.
	 *
	 * @param string   $kind Kind of the rows.
	 * @param callable $make Creates one row; returns its id or an error message.
	 */
	private function each( string $kind, callable $make ): void {
		$rows  = $this->fixture[ $kind ] ?? array();
		$scope = $this->scopes[ $kind ] ?? null;
		foreach ( is_array( $rows ) ? array_values( $rows ) : array() as $at => $row ) {
			$full = ( $this->created[ $kind ] ?? 0 ) >= ( $scope['maxRecords'] ?? self::MOST );
			if ( null === $scope || ! is_array( $row ) || $full || ! seed_selects( $kind, $row, $scope ) ) {
				$this->skipped[ $kind ] = ( $this->skipped[ $kind ] ?? 0 ) + 1;
				continue;
			}
			$own = $row['ID'] ?? $row['id'] ?? $row['term_id'] ?? null;
			$own = is_int( $own ) && $own > 0 ? $own : null;
			$id  = $make( $row, Seed_Ids::Assigned === $this->kept ? null : $own );
			if ( is_wp_error( $id ) || ! $id ) {
				$why              = is_wp_error( $id ) ? $id->get_error_message() : 'it was not made';
				$this->problems[] = "{$kind}[{$at}]: {$why}";
				continue;
			}
			$this->created[ $kind ] = ( $this->created[ $kind ] ?? 0 ) + 1;
			if ( null === $own ) {
				continue;
			}
			$this->ids[ $kind ][ $own ] = (int) $id;
			if ( (int) $id !== $own ) {
				$this->moved( "{$kind}[{$at}]: the id $own is not free, so the row has the id $id" );
			}
		}
	}

	/**
	 * Records that a row has another id than in the fixture.
	 *
	 * @param string $what Sentence about the row.
	 */
	private function moved( string $what ): void {
		match ( $this->kept ) {
			Seed_Ids::Assigned  => null,
			Seed_Ids::Preferred => $this->moved[] = $what,
			Seed_Ids::Required  => $this->problems[] = $what,
		};
	}

	/**
	 * Creates a user without personal name and email address.
	 *
	 * @param array<string, mixed> $row Row to read.
	 * @param int|null             $id  Id that it should have.
	 * @return int|\WP_Error
	 */
	private function user( array $row, ?int $id ) {
		$number = ( $this->created['users'] ?? 0 ) + 1;
		$role   = is_string( $row['role'] ?? null ) && get_role( $row['role'] ) ? $row['role'] : 'subscriber';
		$login  = "seeded-{$role}-{$number}";
		$fields = array(
			'user_login'   => $login,
			'user_email'   => "{$login}@example.org",
			'display_name' => "Seeded {$role} {$number}",
			'role'         => $role,
		);
		return make_user( $fields, null === $id || get_user_by( 'id', $id ) ? null : $id );
	}

	/**
	 * Creates a term, or finds the existing one with its slug.
	 *
	 * @param array<string, mixed> $row Row to read.
	 * @param int|null             $id  Id that it should have.
	 * @return int|\WP_Error
	 */
	private function term( array $row, ?int $id ) {
		global $wpdb;
		$taxonomy = (string) ( $row['taxonomy'] ?? 'category' );
		$name     = (string) ( $row['name'] ?? $row['slug'] ?? '' );
		$slug     = sanitize_title( (string) ( $row['slug'] ?? $name ) );
		if ( null !== $id && '' !== $slug && taxonomy_exists( $taxonomy ) && ! get_term( $id ) && ! get_term_by( 'slug', $slug, $taxonomy ) ) {
			// WordPress's functions do not create a term with a given id.
			$wpdb->insert(
				$wpdb->terms,
				array(
					'term_id' => $id,
					'name'    => $name,
					'slug'    => $slug,
				)
			);
			$wpdb->insert(
				$wpdb->term_taxonomy,
				array(
					'term_id'     => $id,
					'taxonomy'    => $taxonomy,
					'description' => (string) ( $row['description'] ?? '' ),
					'parent'      => $this->ids['terms'][ $row['parent'] ?? 0 ] ?? 0,
				)
			);
			clean_term_cache( $id, $taxonomy );
			return $id;
		}
		$term     = wp_insert_term(
			$name,
			$taxonomy,
			array_intersect_key( $row, array_flip( array( 'slug', 'description' ) ) ) + array( 'parent' => $this->ids['terms'][ $row['parent'] ?? 0 ] ?? 0 )
		);
		if ( is_wp_error( $term ) && 'term_exists' === $term->get_error_code() ) {
			return (int) $term->get_error_data();
		}
		return is_wp_error( $term ) ? $term : (int) $term['term_id'];
	}

	/**
	 * Creates a post with its terms and scalar meta. A post of the same id that every new site has, such as
	 * "Hello world!", is replaced.
	 *
	 * @param array<string, mixed> $row Row to read.
	 * @param int|null             $id  Id that it should have.
	 * @return int|\WP_Error
	 */
	private function post( array $row, ?int $id ) {
		$fields = array( 'post_type', 'post_title', 'post_name', 'post_status', 'post_content', 'post_excerpt', 'post_date', 'menu_order', 'comment_status' );
		$post   = array_intersect_key( $row, array_flip( $fields ) ) + array( 'post_status' => 'publish' );
		$author = $this->ids['users'][ $row['post_author'] ?? 0 ] ?? 1;
		$parent = $this->ids['posts'][ $row['post_parent'] ?? 0 ] ?? 0;
		$this->make_room( $id );
		$id = wp_insert_post(
			wp_slash(
				$post + array(
					'post_author' => $author,
					'post_parent' => $parent,
					'import_id'   => $id ?? 0,
				)
			),
			true
		);
		if ( is_wp_error( $id ) ) {
			return $id;
		}
		foreach ( is_array( $row['meta'] ?? null ) ? $row['meta'] : array() as $name => $value ) {
			update_post_meta( $id, (string) $name, wp_slash( $value ) );
		}
		foreach ( is_array( $row['terms'] ?? null ) ? $row['terms'] : array() as $taxonomy => $slugs ) {
			$set = wp_set_object_terms( $id, (array) $slugs, (string) $taxonomy );
			if ( is_wp_error( $set ) ) {
				return $set;
			}
		}
		return $id;
	}

	/**
	 * Deletes the post with this id if it is content of a new site, so that a row of the fixture can have its id.
	 *
	 * @param int|null $id Id that a row should have.
	 */
	private function make_room( ?int $id ): void {
		$post = null === $id ? null : get_post( $id );
		if ( $post && $post->ID <= self::NEW_SITE_POSTS && ! in_array( $post->ID, array( ...array_values( $this->ids['posts'] ?? array() ), ...array_values( $this->ids['media'] ?? array() ) ), true ) ) {
			wp_delete_post( $post->ID, true );
		}
	}

	/**
	 * Creates the attachment row of a media item; its file is not imported.
	 *
	 * @param array<string, mixed> $row Row to read.
	 * @param int|null             $id  Id that it should have.
	 * @return int|\WP_Error
	 */
	private function medium( array $row, ?int $id ) {
		$fields = array( 'post_title', 'post_name', 'post_content', 'post_excerpt', 'post_mime_type' );
		$parent = $this->ids['posts'][ $row['post_parent'] ?? 0 ] ?? 0;
		$this->make_room( $id );
		return wp_insert_attachment( wp_slash( array_intersect_key( $row, array_flip( $fields ) ) + array( 'import_id' => $id ?? 0 ) ), false, $parent, true );
	}

	/**
	 * Sets the options of the fixture that the scope selects.
	 */
	private function options(): void {
		$values = $this->fixture['options'] ?? array();
		$names  = $this->scopes['options']['names'] ?? array();
		$most   = $this->scopes['options']['maxRecords'] ?? count( $names );
		foreach ( is_array( $values ) ? $values : array() as $name => $value ) {
			if ( ! in_array( (string) $name, $names, true ) || ( $this->created['options'] ?? 0 ) >= $most ) {
				$this->skipped['options'] = ( $this->skipped['options'] ?? 0 ) + 1;
				continue;
			}
			update_option( (string) $name, $value );
			$this->created['options'] = ( $this->created['options'] ?? 0 ) + 1;
		}
	}
}
