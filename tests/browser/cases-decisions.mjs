/**
 * Rejections, requests for changes, downloads and discards, and two administrators who approve the same bundle.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { holds, plugin, read, same, site, soon, test, User } from './harness.mjs';

export default async function ( browser, admin ) {
	const { page } = admin;
	let bundle = null;
	const original = read( 'sample.php' );

	await test( 'decisions: when two administrators approve the same bundle, the second sees a conflict', async () => {
		await admin.open();
		bundle = await admin.bundle( 'quick' );
		const second = await User.login( browser, 'second' );
		for ( const user of [ admin, second ] ) {
			await user.open( '#/bundles/' + bundle.run );
			await user.page.getByRole( 'checkbox', { name: 'sample.php' } ).check();
			await user.button( 'Approve and apply…' ).click();
			await user.page.getByRole( 'dialog' ).waitFor();
		}
		await page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( '1 file was handed to the site.' ).waitFor();
		const written = read( 'sample.php' );
		same( original.replace( "'helo'", "'hello'" ), written, 'the file after the first approval' );
		await second.page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Approve and apply' } ).click();
		const problem = second.page.getByRole( 'dialog' ).locator( '.wp-codebox-error' );
		await problem.waitFor();
		const words = await problem.innerText();
		holds( `the second administrator sees the conflict: ${ words }`, words.includes( 'wp_codebox_apply_conflict' ) && words.includes( 'Nothing on this site was changed.' ) );
		same( written, read( 'sample.php' ), 'the file after the second approval' );
		await second.accessible( 'a conflict' );
		await second.picture( 'conflict' );
		await second.page.keyboard.press( 'Escape' );
		await soon( 'Escape closes the dialog', async () => 0 === await second.page.locator( 'dialog' ).count() );
		await second.button( 'Approve and apply…' ).click();
		await second.page.locator( '.wp-codebox-result .wp-codebox-error' ).waitFor();
		same( 0, await second.page.locator( 'dialog' ).count(), 'a conflicting approval is refused without a dialog' );
		await second.unharmed( 'conflict' );
		await second.context.close();
		writeFileSync( plugin + '/sample.php', original );
	} );

	await test( 'decisions: rejecting and requesting changes need a reason and change no file', async () => {
		await admin.open( '#/bundles/' + bundle.run );
		for ( const [ label, confirm, said ] of [ [ 'Reject…', 'Reject', 'The change was rejected.' ], [ 'Ask for changes…', 'Ask for changes', 'Changes were requested.' ] ] ) {
			await admin.button( label ).click();
			const dialog = page.getByRole( 'dialog' );
			await admin.accessible( `the dialog ${ confirm }` );
			await dialog.getByRole( 'button', { name: confirm } ).click();
			holds( 'the dialog stays open without a reason', await dialog.isVisible() );
			await dialog.getByLabel( 'Reason' ).fill( `Because of ${ confirm }` );
			await dialog.getByRole( 'button', { name: confirm } ).click();
			await page.getByText( said ).waitFor();
			const words = await admin.text( '.wp-codebox-result' );
			holds( `the result shows reason and effect: ${ words }`, words.includes( 'Nothing on this site was changed.' ) && words.includes( `Because of ${ confirm }` ) );
		}
		same( original, read( 'sample.php' ), 'the file on disk' );
	} );

	await test( 'decisions: the downloaded archive has the manifest and the digest shown on the page', async () => {
		const waiting = page.waitForEvent( 'download' );
		await admin.button( 'Download' ).click();
		const file = await ( await waiting ).path();
		await page.getByText( 'The bundle was downloaded.' ).waitFor();
		const sha256 = createHash( 'sha256' ).update( readFileSync( file ) ).digest( 'hex' );
		holds( 'the page shows the sha256 of the archive', ( await admin.text( '.wp-codebox-result' ) ).includes( sha256 ) );
		holds( 'the archive contains the manifest', /(^|\/)manifest\.json$/m.test( execFileSync( 'tar', [ '-tf', file ], { encoding: 'utf8' } ) ) );
	} );

	await test( 'decisions: a tampered bundle can be rejected and discarded, not approved', async () => {
		const [ name ] = readdirSync( site.state + '/sites' );
		const target = `${ site.state }/sites/${ name }/artifacts/${ bundle.run }/files/patch.diff`;
		const before = readFileSync( target );
		appendFileSync( target, '+one line more\n' );
		await admin.open( '#/bundles/' + bundle.run );
		const words = await admin.words();
		holds( 'the page reports the tampered file', words.includes( 'damaged or altered' ) && words.includes( 'The verification of this bundle failed.' ) && words.includes( 'files/patch.diff' ) );
		same( 0, await admin.button( 'Approve and apply…' ).count(), 'a tampered bundle has no approval button' );
		same( 0, await page.locator( '.wp-codebox-files input' ).count(), 'a tampered bundle has no file checkboxes' );
		holds( 'a tampered bundle can be rejected and discarded', await admin.button( 'Reject…' ).isVisible() && await admin.button( 'Discard…' ).isVisible() );
		await admin.accessible( 'a damaged bundle' );
		await admin.picture( 'tampered' );
		writeFileSync( target, before );
		await admin.open( '#/bundles/' + bundle.run );
		same( 1, await admin.button( 'Approve and apply…' ).count(), 'the restored bundle can be approved' );
	} );

	await test( 'decisions: a bundle is discarded after a confirmation and is gone from the list', async () => {
		await admin.button( 'Discard…' ).click();
		const dialog = page.getByRole( 'dialog' );
		holds( 'the dialog names the bundle', ( await dialog.innerText() ).includes( bundle.id ) );
		await page.keyboard.press( 'Escape' );
		await soon( 'the focus returns to the button', async () => 'Discard…' === await page.evaluate( () => document.activeElement.textContent ) );
		await admin.button( 'Discard…' ).click();
		await dialog.getByRole( 'button', { name: 'Discard' } ).click();
		await page.waitForURL( /#\/bundles$/ );
		await page.getByRole( 'heading', { name: 'Bundles', exact: true } ).waitFor();
		same( 0, await page.locator( `a[href="#/bundles/${ bundle.run }"]` ).count(), 'the list has no link to the discarded bundle' );
		await admin.go( '#/bundles/' + bundle.run );
		await page.locator( '.wp-codebox-error' ).waitFor();
		holds( 'the page of the discarded bundle reports not found', ( await admin.words() ).includes( 'wp_codebox_artifact_not_found' ) );
		await admin.unharmed( 'decisions' );
	} );
}
