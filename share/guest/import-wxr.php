<?php
/**
 * Imports an export file of WordPress (WXR): authors, terms, posts with their meta data, terms and comments.
 *
 * The file is in `$codebox_wxr`. Attachments are created without their files, which a guest does not
 * download. Prints {authors, terms, posts, comments}. Exit status 1 when the text is not such a file.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;
require_once ABSPATH . 'wp-admin/includes/taxonomy.php';

/**
 * Imports one export file.
 */
final class Wxr_Import {

	/**
	 * Number of imported rows by kind.
	 *
	 * @var array<string, int>
	 */
	public array $counts = array(
		'authors'  => 0,
		'terms'    => 0,
		'posts'    => 0,
		'comments' => 0,
	);

	/**
	 * New id of each post by its id in the file.
	 *
	 * @var array<int, int>
	 */
	private array $posts = array();

	/**
	 * Parents that come later in the file: id of the parent in the file, by new id of the child.
	 *
	 * @var array<int, int>
	 */
	private array $parents = array();

	/**
	 * Creates an import.
	 *
	 * @param \SimpleXMLElement     $channel    Channel of the file.
	 * @param array<string, string> $namespaces Namespaces of the file.
	 */
	public function __construct( private \SimpleXMLElement $channel, private array $namespaces ) {}

	/**
	 * Imports everything.
	 */
	public function run(): void {
		foreach ( $this->wp( $this->channel )->author as $author ) {
			$this->author( $this->wp( $author ) );
		}
		foreach ( array( 'category', 'tag', 'term' ) as $kind ) {
			foreach ( $this->wp( $this->channel )->$kind as $term ) {
				$this->term( $kind, $this->wp( $term ) );
			}
		}
		foreach ( $this->channel->item as $item ) {
			$this->post( $item );
		}
		foreach ( $this->parents as $child => $parent ) {
			if ( isset( $this->posts[ $parent ] ) ) {
				wp_update_post(
					array(
						'ID'          => $child,
						'post_parent' => $this->posts[ $parent ],
					)
				);
			}
		}
	}

	/**
	 * Returns the children of an element in the namespace `wp`.
	 *
	 * @param \SimpleXMLElement $element Element.
	 */
	private function wp( \SimpleXMLElement $element ): \SimpleXMLElement {
		return $element->children( $this->namespaces['wp'] );
	}

	/**
	 * Creates a user unless one with this login exists.
	 *
	 * @param \SimpleXMLElement $author Author.
	 */
	private function author( \SimpleXMLElement $author ): void {
		$login = sanitize_user( (string) $author->author_login, true );
		if ( '' === $login || username_exists( $login ) ) {
			return;
		}
		$user = wp_insert_user(
			array(
				'user_login'   => $login,
				'user_pass'    => wp_generate_password( 24 ),
				'user_email'   => sanitize_email( (string) $author->author_email ),
				'display_name' => (string) $author->author_display_name,
				'role'         => 'author',
			)
		);

		$this->counts['authors'] += is_wp_error( $user ) ? 0 : 1;
	}

	/**
	 * Creates a term unless its taxonomy has one with this slug.
	 *
	 * @param string            $kind Kind: category, tag or term.
	 * @param \SimpleXMLElement $term Term.
	 */
	private function term( string $kind, \SimpleXMLElement $term ): void {
		list( $taxonomy, $slug, $name, $parent ) = match ( $kind ) {
			'category' => array( 'category', $term->category_nicename, $term->cat_name, $term->category_parent ),
			'tag'      => array( 'post_tag', $term->tag_slug, $term->tag_name, '' ),
			default    => array( (string) $term->term_taxonomy, $term->term_slug, $term->term_name, $term->term_parent ),
		};
		if ( ! taxonomy_exists( $taxonomy ) || term_exists( (string) $slug, $taxonomy ) ) {
			return;
		}
		$above = '' === (string) $parent ? null : get_term_by( 'slug', (string) $parent, $taxonomy );
		$made  = wp_insert_term(
			(string) $name,
			$taxonomy,
			array(
				'slug'   => (string) $slug,
				'parent' => $above ? $above->term_id : 0,
			)
		);

		$this->counts['terms'] += is_wp_error( $made ) ? 0 : 1;
	}

	/**
	 * Creates a post with its meta data, terms and comments.
	 *
	 * @param \SimpleXMLElement $item Item of the file.
	 */
	private function post( \SimpleXMLElement $item ): void {
		$row    = $this->wp( $item );
		$login  = (string) $item->children( $this->namespaces['dc'] ?? '' )->creator;
		$author = get_user_by( 'login', $login );
		$parent = (int) $row->post_parent;
		$post   = wp_insert_post(
			wp_slash(
				array(
					'import_id'      => (int) $row->post_id,
					'post_author'    => $author ? $author->ID : 1,
					'post_date'      => (string) $row->post_date,
					'post_date_gmt'  => (string) $row->post_date_gmt,
					'post_content'   => (string) $item->children( $this->namespaces['content'] ?? '' )->encoded,
					'post_excerpt'   => (string) $item->children( $this->namespaces['excerpt'] ?? '' )->encoded,
					'post_title'     => (string) $item->title,
					'post_status'    => (string) $row->status,
					'post_name'      => (string) $row->post_name,
					'comment_status' => (string) $row->comment_status,
					'ping_status'    => (string) $row->ping_status,
					'guid'           => (string) $item->guid,
					'post_parent'    => $this->posts[ $parent ] ?? 0,
					'menu_order'     => (int) $row->menu_order,
					'post_type'      => (string) $row->post_type,
					'post_password'  => (string) $row->post_password,
				)
			),
			true
		);
		if ( is_wp_error( $post ) ) {
			fwrite( STDERR, sprintf( "the post %s was not imported: %s\n", (string) $item->title, $post->get_error_message() ) );
			return;
		}
		++$this->counts['posts'];
		$this->posts[ (int) $row->post_id ] = $post;
		if ( $parent && ! isset( $this->posts[ $parent ] ) ) {
			$this->parents[ $post ] = $parent;
		}
		if ( '1' === (string) $row->is_sticky ) {
			stick_post( $post );
		}
		foreach ( $row->postmeta as $meta ) {
			$value = maybe_unserialize( (string) $this->wp( $meta )->meta_value );
			add_post_meta( $post, wp_slash( (string) $this->wp( $meta )->meta_key ), wp_slash( $value ) );
		}
		foreach ( $item->category as $term ) {
			$this->assign( $post, $term );
		}
		foreach ( $row->comment as $comment ) {
			$this->comment( $post, $this->wp( $comment ) );
		}
	}

	/**
	 * Adds a term to a post; creates the term if the file lists it only in the post.
	 *
	 * @param int               $post Id of the post.
	 * @param \SimpleXMLElement $term Term of the item.
	 */
	private function assign( int $post, \SimpleXMLElement $term ): void {
		$taxonomy = 'tag' === (string) $term['domain'] ? 'post_tag' : (string) $term['domain'];
		if ( ! taxonomy_exists( $taxonomy ) ) {
			return;
		}
		$slug  = (string) $term['nicename'];
		$found = get_term_by( 'slug', $slug, $taxonomy );
		$made  = $found ? null : wp_insert_term( (string) $term, $taxonomy, array( 'slug' => $slug ) );
		if ( $found || ! is_wp_error( $made ) ) {
			wp_set_object_terms( $post, $found ? $found->term_id : $made['term_id'], $taxonomy, true );
		}
	}

	/**
	 * Adds a comment to a post.
	 *
	 * @param int               $post    Id of the post.
	 * @param \SimpleXMLElement $comment Comment of the item.
	 */
	private function comment( int $post, \SimpleXMLElement $comment ): void {
		wp_insert_comment(
			wp_slash(
				array(
					'comment_post_ID'      => $post,
					'comment_author'       => (string) $comment->comment_author,
					'comment_author_email' => (string) $comment->comment_author_email,
					'comment_author_url'   => (string) $comment->comment_author_url,
					'comment_date'         => (string) $comment->comment_date,
					'comment_date_gmt'     => (string) $comment->comment_date_gmt,
					'comment_content'      => (string) $comment->comment_content,
					'comment_approved'     => (string) $comment->comment_approved,
					'comment_type'         => (string) $comment->comment_type,
				)
			)
		);
		++$this->counts['comments'];
	}
}

// The content of an export file is that of an administrator: it is stored without filtering its HTML.
wp_set_current_user( 1 );
$codebox_errors = libxml_use_internal_errors( true );
// Without LIBXML_NOENT and with LIBXML_NONET the parser reads no other file and no URL to which the text refers.
$codebox_file   = simplexml_load_string( (string) $codebox_wxr, \SimpleXMLElement::class, LIBXML_NONET | LIBXML_NOCDATA );
$codebox_spaces = $codebox_file ? $codebox_file->getDocNamespaces( true ) : array();
if ( ! $codebox_file || ! isset( $codebox_file->channel, $codebox_spaces['wp'] ) ) {
	fwrite( STDERR, "the text is not an export file of WordPress (WXR)\n" );
	exit( 1 );
}
$codebox_import = new Wxr_Import( $codebox_file->channel, $codebox_spaces );
$codebox_import->run();
echo wp_json_encode( $codebox_import->counts ), "\n";
