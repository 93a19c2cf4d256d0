/**
 * Uses the block editor of a sandbox's WordPress through a preview: edits of a visitor are saved in the sandbox.
 */
import { spawn } from 'node:child_process';
import { holds, same, site, soon, test, User } from './harness.mjs';

const LOGIN = 'previewer';
const SETUP = `
update_option( 'permalink_structure', '/%postname%/' );
update_option( 'show_avatars', 0 );
flush_rewrite_rules( false );
// The command palette is four megabytes of scripts on each page of wp-admin.
wp_mkdir_p( WPMU_PLUGIN_DIR );
file_put_contents( WPMU_PLUGIN_DIR . '/palette.php', "<?php remove_action( 'admin_enqueue_scripts', 'wp_enqueue_command_palette_assets' );" );
$user = wp_insert_user( array( 'user_login' => '${ LOGIN }', 'user_pass' => '${ site.password }', 'role' => 'administrator' ) );
// The welcome guide of the editor loads pictures from wordpress.org.
update_user_meta( $user, $GLOBALS['wpdb']->get_blog_prefix() . 'persisted_preferences', array( 'core/edit-post' => array( 'welcomeGuide' => false ), '_modified' => gmdate( 'c' ) ) );
`;
// A PNG image of one pixel.
const PNG = Buffer.from( 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64' );

/** A run whose sandbox stays open for visitors of its preview. */
class Preview {
	constructor() {
		const { RUNNER, LAUNCHER, SHARE, WORDPRESS, PHP } = process.env;
		this.said = '';
		this.run = spawn( RUNNER, [ 'run', '--wordpress', WORDPRESS, '--state', site.state, '--share', SHARE, '--launcher', LAUNCHER, '--php', PHP, '--site', 'preview', '--json',
			'--preview-hold', '10m', '--mount', `${ site.path }/wp-content/plugins/sample:/wordpress/wp-content/plugins/sample`, '--command', 'wordpress.run-php', '--arg', `code=${ SETUP }` ], { stdio: [ 'ignore', 'ignore', 'pipe' ] } );
		// Stops the run also when the suite aborts.
		this.end = () => this.run.kill( 'SIGTERM' );
		process.on( 'exit', this.end );
		this.over = new Promise( ( resolve ) => this.run.on( 'close', resolve ) );
		this.run.stderr.on( 'data', ( piece ) => {
			this.said += piece;
		} );
	}

	/** Origin of the preview, without a trailing slash. */
	async origin() {
		const found = () => /^preview (\S+)\/ until /m.exec( this.said );
		await soon( 'the preview is open', () => null !== found() || null !== this.run.exitCode, 150000 );
		holds( `no preview: ${ this.said }`, null !== found() );
		return found()[ 1 ];
	}

	async close() {
		this.end();
		process.off( 'exit', this.end );
		await this.over;
	}
}

/** Opens a page in the block editor and waits until the editor is ready. */
async function edit( page, address ) {
	await page.goto( address );
	await page.waitForFunction( () => window.wp?.data?.select( 'core/editor' )?.getCurrentPostId() && window.wp.blocks.getBlockType( 'core/image' ) );
	const canvas = page.frameLocator( 'iframe[name="editor-canvas"]' );
	await canvas.locator( '.wp-block-post-title' ).waitFor();
	return canvas;
}

/** Saves the page like the save button and returns the page as WordPress stores it. */
async function save( page, edits = {} ) {
	return page.evaluate( async ( given ) => {
		const { dispatch, select } = window.wp.data;
		dispatch( 'core/editor' ).editPost( given );
		await dispatch( 'core/editor' ).savePost();
		const { id, status, link } = select( 'core/editor' ).getCurrentPost();
		return { id, status, link, saved: select( 'core/editor' ).didPostSaveRequestSucceed() };
	}, edits );
}

export default async function ( browser ) {
	await test( 'editor: a page can be written, trashed and restored and an image uploaded through a preview', async () => {
		const preview = new Preview();
		try {
			const origin = await preview.origin();
			const visitor = await User.login( browser, LOGIN, {}, origin );
			const { page } = visitor;
			// Collected by the test and not in the page: a page's own list would be lost at each navigation and miss other frames.
			const refused = [];
			page.on( 'console', ( message ) => {
				if ( message.text().includes( 'Content Security Policy' ) ) {
					refused.push( message.text() );
				}
			} );

			let canvas = await edit( page, origin + '/wp-admin/post-new.php' );
			await canvas.locator( '.wp-block-post-title' ).click();
			await page.keyboard.insertText( 'Written in a preview' );
			await page.keyboard.press( 'Enter' );
			await page.keyboard.insertText( 'By the hand of a visitor.' );
			const made = await save( page, { status: 'publish' } );
			same( { status: 'publish', saved: true }, { status: made.status, saved: made.saved }, 'published' );
			const place = `${ origin }/wp-admin/post.php?post=${ made.id }&action=edit`;
			await page.goto( made.link );
			holds( 'the page has the paragraph', ( await page.innerText( 'body' ) ).includes( 'By the hand of a visitor.' ) );

			// An editor loads megabytes of scripts, so the post is opened once for the image and the trash.
			canvas = await edit( page, place );
			await page.evaluate( () => window.wp.data.dispatch( 'core/block-editor' ).insertBlocks( window.wp.blocks.createBlock( 'core/image' ) ) );
			await canvas.locator( '.wp-block-image input[type=file]' ).setInputFiles( { name: 'one-pixel.png', mimeType: 'image/png', buffer: PNG } );
			const image = () => page.evaluate( () => {
				const { attributes } = window.wp.data.select( 'core/block-editor' ).getBlocks().find( ( block ) => 'core/image' === block.name );
				return { id: attributes.id ?? null, url: attributes.url ?? '' };
			} );
			await soon( 'the upload has ended', async () => null !== ( await image() ).id );
			const { id, url } = await image();
			holds( `the image is below the uploads of the preview: ${ url }`, url.startsWith( origin + '/wp-content/uploads/' ) && url.endsWith( '/one-pixel.png' ) );
			same( true, ( await save( page ) ).saved, 'saved with the image' );
			same( [ 200, PNG.length ], await page.evaluate( async ( address ) => {
				const answer = await fetch( address );
				return [ answer.status, ( await answer.arrayBuffer() ).byteLength ];
			}, url ), 'status and size of the image file' );

			const trashed = await page.evaluate( async () => {
				await window.wp.data.dispatch( 'core/editor' ).trashPost();
				return window.wp.data.select( 'core/editor' ).getCurrentPostAttribute( 'status' );
			} );
			same( 'trash', trashed, 'status of the trashed page' );
			await page.goto( origin + '/wp-admin/edit.php?post_status=trash&post_type=post' );
			same( 'Trash (1)', await page.locator( '.subsubsub .trash a' ).innerText(), 'the view of the list' );
			const row = page.locator( `#post-${ made.id }` );
			await row.hover();
			await row.getByRole( 'link', { name: /Restore/ } ).click();
			await page.locator( '#message' ).getByText( '1 post restored from the Trash.' ).waitFor();
			await page.goto( origin + '/wp-admin/upload.php?mode=list' );
			holds( 'the media library lists the image', ( await page.locator( `#post-${ id }` ).innerText() ).includes( 'one-pixel' ) );

			same( [], visitor.errors, 'script errors on the pages' );
			same( [], visitor.foreign, 'requests to other origins' );
			same( [], refused, 'violations of the content security policy of the preview' );
			await page.evaluate( () => {
				new Image().src = 'https://elsewhere.example/a.png';
			} );
			await soon( 'positive control: a violation is recorded', () => 1 === refused.length );
			await visitor.context.close();
		} finally {
			await preview.close();
		}
	} );
}
