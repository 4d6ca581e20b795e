# SPDX-License-Identifier: Apache-2.0
"""CAs and certificates made with the openssl command (EC P-256), and a folder
of them that is rotated as Kubernetes and others do."""

import os
import subprocess


def _openssl(*arguments):
    subprocess.run(("openssl",) + arguments, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Pair:
    """A certificate and its key: paths, and what is in them."""

    def __init__(self, folder, name):
        self.certificate_path = os.path.join(folder, name + ".pem")
        self.key_path = os.path.join(folder, name + ".key")

    @property
    def certificate(self):
        with open(self.certificate_path, "rb") as file:
            return file.read()

    @property
    def key(self):
        with open(self.key_path, "rb") as file:
            return file.read()


class Authority(Pair):
    """A CA that issues into its own folder."""

    def __init__(self, folder, name="ca"):
        super().__init__(folder, name)
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                 "-subj", f"/CN={name}", "-keyout", self.key_path,
                 "-out", self.certificate_path)

    def issue(self, name, days=1,
              names="IP:127.0.0.1,DNS:localhost", uri=None):
        """A certificate; with `uri` it names a caller (SPIFFE)."""
        pair = Pair(self.folder, name)
        request = os.path.join(self.folder, name + ".csr")
        extensions = os.path.join(self.folder, name + ".ext")
        with open(extensions, "w", encoding="ascii") as file:
            file.write("subjectAltName=" +
                       (f"URI:{uri}" if uri else names) + "\n")
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                 "-keyout", pair.key_path, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate_path,
                 "-CAkey", self.key_path, "-CAcreateserial", "-days",
                 str(days), "-extfile", extensions, "-out",
                 pair.certificate_path)
        return pair


class ServedFolder:
    """DIR/live -> DIR/N with the three files of a daemon."""

    def __init__(self, folder):
        self.folder = folder
        self.rotations = 0
        self.certificate = os.path.join(folder, "live", "server.pem")
        self.key = os.path.join(folder, "live", "key.pem")
        self.client_ca = os.path.join(folder, "live", "ca.pem")
        os.makedirs(folder, exist_ok=True)

    def rotate(self, certificate, key, client_ca):
        """Writes a new folder and swaps the link; takes bytes."""
        self.rotations += 1
        name = str(self.rotations)
        os.mkdir(os.path.join(self.folder, name))
        for file_name, content in (("server.pem", certificate),
                                   ("key.pem", key), ("ca.pem", client_ca)):
            with open(os.path.join(self.folder, name, file_name), "wb") as out:
                out.write(content)
        following = os.path.join(self.folder, "next")
        os.symlink(name, following)
        os.rename(following, os.path.join(self.folder, "live"))

    def flags(self, address):
        return ("--listen-tls", address, "--tls-certificate", self.certificate,
                "--tls-key", self.key, "--tls-client-ca", self.client_ca)
